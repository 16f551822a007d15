# SPDX-License-Identifier: MIT
# Cuts an MPI's header down to MPI-2.2 and writes the library to go with it.
#
#     perl cut.pl NAMES HEADER LIBRARY REAL < preprocessed
#
# NAMES: the functions of MPI-2.2, as in test/abi/mpi22.txt. Writes HEADER (mpi.h) and LIBRARY (C source), each of
# whose functions calls its namesake in REAL, the MPI's shared library. Standard input: what
# "cc -E -dD" makes of the MPI's <mpi.h>.
use strict;
use warnings;

my ($names, $header, $library, $real) = @ARGV;

# What came after MPI-2.2, functions apart, and what is the MPI's own.
my $later = qr/^(?:Q?P?MPIX_|QMPI_|P?MPI_T_|
    MPI_(?:COUNT|CXX_\w+|MESSAGE_\w+|SESSION_\w+|NO_OP|WIN_CREATE_FLAVOR|WIN_MODEL|WIN_FLAVOR_\w+
        |WIN_SEPARATE|WIN_UNIFIED|MAX_LIBRARY_VERSION_STRING|MAX_STRINGTAG_LEN|MAX_PSET_NAME_LEN
        |ERRORS_ABORT|INFO_ENV|COMM_TYPE_\w+|WEIGHTS_EMPTY|ERR_RMA_(?:RANGE|ATTACH|SHARED|FLAVOR)
        |ERR_SESSION|ERR_PROC_ABORTED|ERR_VALUE_TOO_LARGE|CONVERSION_FN_NULL_C
        |COMBINER_HINDEXED_BLOCK|Count|Message|Session|Session_\w+|F08_\w+|F08_status
        |User_function_c|Datarep_conversion_function_c)$)/x;

open my $list, '<', $names or die "$names: $!\n";
my %standard;
for (grep { !/^#/ } <$list>) {
    my ($beginning, @ends) = split;
    $standard{"$beginning$_"} = 1 for @ends;
}

# Whether MPI-2.2 has a function; MPI_Comm_c2f and its like are macros here.
sub has_function {
    my ($name) = @_;
    return $standard{$name =~ s/^PMPI/MPI/r} || $name eq 'MPIR_Dup_fn';
}

# --- the header -----------------------------------------------------------------------------------

my (@out, @functions, %macros);

sub define {
    my ($line) = @_;
    my ($name) = $line =~ /^#(?:define|undef) (\w+)/ or return;
    $line =~ s/\d+/2/ if $name eq 'MPI_VERSION' || $name eq 'MPI_SUBVERSION';
    $macros{$name} = 1 if $line =~ /^#define \w+\(/;
    $line =~ s/MPICH_NUMVERSION/NBC_TEST_NUMVERSION/ and push @out, $line; # for tests alone
    return if $name =~ $later || $name =~ /^P?MPI_[A-Z]\w*[a-z]\w*$/ && !has_function($name);
    push @out, $line if $name =~ /^P?MPI_|^MPICH(?:_VERSION)?$/;
}

sub declaration {
    my ($text) = @_;
    $text =~ s/\s+/ /g;
    $text =~ s/^ //;
    return if $text =~ /\b(?:MPI_Session|MPI_Count|P?MPI_T_\w+|QMPI_\w+|MPIR_F08\w*|MPIX_\w+)\b/;
    if ($text =~ /^typedef enum /) {
        push @out, $text if $text =~ /MPI_GRAPH/;
    } elsif ($text =~ /^(?:typedef|extern) (?:.*\} ?|.*\()?(?:.*[ *])??(MPI_\w+)(?:\).*)? ?;$/) {
        push @out, $text unless $1 =~ $later;
    } elsif ($text =~ /^enum /) {
        $text =~ s/, MPI_COMBINER_HINDEXED_BLOCK[^,}]*//;
        push @out, $text;
    } elsif ($text =~ /^(\w+) ?(\w+) ?\((.*)\) ?;$/ && has_function($2)) {
        my ($type, $name, $parameters) = ($1, $2, $3);
        $parameters =~ s/\bconst //g;
        push @out, "$type $name($parameters);";
        push @functions, [$type, $name, $parameters] if $name =~ /^PMPI_|^MPIR_/;
    }
}

# Lines of the MPI's headers only; a statement ends with a semicolon outside braces.
my ($ours, $statement) = (0, '');
while (my $line = <STDIN>) {
    if ($line =~ /^# \d+ "(.*)"/) {
        $ours = $1 =~ m{(?:^|/)mpi(?:o|_proto)?\.h$};
        next;
    }
    next unless $ours;
    if ($line =~ /^#/) {
        define($line =~ s/\n//r);
        next;
    }
    chomp $line;
    $statement .= " $line";
    next unless $line =~ /;\s*$/ && ($statement =~ tr/{//) == ($statement =~ tr/}//);
    declaration($statement);
    $statement = '';
}

# MPICH 4.3 has macros for the conversions that it also has as functions.
@functions = grep { !$macros{$_->[1]} } @functions;

open my $h, '>', $header or die "$header: $!\n";
print $h "/* MPI-2.2, cut out of another header. */\n#ifndef MPI_22_H\n#define MPI_22_H\n",
    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
print $h "$_\n" for @out;
print $h "#ifdef __cplusplus\n}\n#endif\n#endif\n";
close $h or die "$header: $!\n";

# --- the library ----------------------------------------------------------------------------------

# The MPI stays out of the global scope: nobody finds there what MPI-2.2 lacks.
open my $c, '>', $library or die "$library: $!\n";
print $c <<"END";
#include "mpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *find(const char *name)
{
    static void *mpi;
    void *found;
    if (!mpi)
        mpi = dlopen("$real", RTLD_NOW | RTLD_LOCAL);
    found = mpi ? dlsym(mpi, name) : NULL;
    if (!found) {
        fprintf(stderr, "mpi22: %s: %s\\n", name, dlerror());
        abort();
    }
    return found;
}

static int unweighted;
int *const MPI_UNWEIGHTED = &unweighted; /* the MPI finds ours in place of its own */
MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;
END

# The type of a parameter, its name aside: "MPI_Comm *comm" -> "MPI_Comm *", "int a[]" -> "int *",
# and of a triple "int a[][3]" -> "int (*)[3]".
sub parameter {
    my ($text, $i) = @_;
    $text =~ s/^\s+|\s+$//g;
    return ($text, '') if $text eq 'void' || $text eq '...';
    return ("$1 (*a$i)[$2]", "a$i") if $text =~ /^(.*?)\w+\s*\[\]\s*\[(\d+)\]$/;
    my $stars = ($text =~ s/\s*\[\s*\]//g) || 0;
    $text =~ s/\b\w+$// if $text =~ /[\s*]\w+$/ && $text !~ /^(?:unsigned|struct) \w+$/;
    return ($text . ' ' . '*' x $stars . "a$i", "a$i");
}

for (@functions) {
    my ($type, $name, $parameters) = @$_;
    next if $name eq 'PMPI_Pcontrol';
    my (@declared, @arguments);
    for (split /,(?![^()]*\))/, $parameters) {
        my ($declaration, $argument) = parameter($_, scalar @arguments);
        push @declared, $declaration;
        push @arguments, $argument if $argument;
    }
    my $p = @declared ? join(', ', @declared) : 'void';
    print $c "\n$type $name($p)\n{\n    static $type (*real)($p);\n    if (!real)\n",
        "        real = ($type (*)($p))find(\"$name\");\n",
        "    return real(", join(', ', @arguments), ");\n}\n";
    (my $twin = $name) =~ s/^PMPI/MPI/;
    print $c "extern __typeof__($name) $twin __attribute__((weak, alias(\"$name\")));\n"
        if $twin ne $name;
}
print $c <<"END";

int PMPI_Pcontrol(int level, ...)
{
    (void)level;
    return MPI_SUCCESS;
}
extern __typeof__(PMPI_Pcontrol) MPI_Pcontrol __attribute__((weak, alias("PMPI_Pcontrol")));
END
close $c or die "$library: $!\n";
