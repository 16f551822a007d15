# The reasons that stand in the sources: why a fault of test/mutate matters to nobody ("mutants"), why
# no test runs a line ("unreached").
#
#     code; /* unreached: REASON */      that line
#     /* unreached: REASON */            on a line of its own: the next line
#     /* unreached below: REASON */      from there to the end of the block
#
# and at the left edge, the function that follows. "mutants" has the names of faults before the reason:
# /* mutants: <= for <, forget - 1: REASON */.
package reasons;
use strict;
use warnings;
use Exporter qw(import);
our @EXPORT_OK = qw(lines_of without_reasons reasons_in);

sub lines_of
{
    my ($path) = @_;
    open my $f, '<', $path or die "$path: $!\n";
    my @lines = <$f>;
    return @lines;
}

sub without_reasons
{
    my ($line) = @_;
    return $line =~ s{\s*/\* (?:mutants|unreached)(?: below)?: .*\*/}{}r;
}

# The last line of the block or function that begins at a line.
sub end_of
{
    my ($lines, $first, $edge) = @_;
    my $last = $first;
    if ($edge eq '') {
        $last++ while $last < $#$lines && $lines->[$last] !~ /^\}/;
        return $last;
    }
    $last++ while $last < $#$lines && $lines->[ $last + 1 ] =~ /^(?:$edge|#|$)/;
    return $last;
}

# Those of one kind in a file: { at => its line, first => …, last => …, text => … }, lines counted from 0.
# Of one that has no line, or another form, "text" is missing.
sub reasons_in
{
    my ($kind, $lines) = @_;
    my @found;
    for my $at (grep { $lines->[$_] =~ m{/\*\s*$kind\b} } 0 .. $#$lines) {
        push @found, { at => $at };
        my ($edge, $code, $below, $text) =
            $lines->[$at] =~ m{^(\s*)(.*?)\s*/\* $kind( below)?: (\S.*) \*/(?:\s*\\)?$} or next;
        my $first = $at;
        if ($code eq '') {
            $first++ while $first < $#$lines && $lines->[$first] =~ m{^\s*/\*.*\*/(?:\s*\\)?$};
            next if $lines->[$first] !~ /^$edge[^\s#}]/;
        } elsif ($below) {
            next;
        }
        my $last = $code eq '' && ($below || $edge eq '') ? end_of($lines, $first, $edge) : $first;
        $found[-1] = { at => $at, first => $first, last => $last, text => $text };
    }
    return @found;
}

1;
