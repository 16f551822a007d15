# SPDX-License-Identifier: MIT
# Makes the completion of a command for bash or zsh from the text of its --help, which is in its source:
#
#   awk -v shell=bash -v command=nbcinfo -f completion.awk src/colls.def src/algs.def tools/nbcinfo.c
#
# An option is a line of two or more blanks, "-x, --name ARGUMENT", two blanks and its meaning; in
# nbctune.c it is a row of a table.

FILENAME ~ /colls\.def$/ {
    if (match($0, /^COLL\([A-Z_]+, *[a-z_]+/)) {
        split(substr($0, 6, RLENGTH - 5), field, /, */)
        collectives = collectives " " field[2]
    }
    next
}
FILENAME ~ /algs\.def$/ {
    if (match($0, /^ *ALG\([A-Z_]+, *[a-z_0-9]+/)) {
        text = substr($0, RSTART, RLENGTH)
        sub(/^ *ALG\(/, "", text)
        split(text, field, /, */)
        schedules = schedules " " tolower(field[1]) ":" field[2]
    }
    next
}

# The options, in their order, with a placeholder for the argument if they have one.
function add(name, argument, meaning)
{
    if (name in seen)
        return
    seen[name] = 1
    option[++n] = name
    takes[n] = argument
    means[n] = meaning
}

/^ *\{"--[a-z-]+", [a-z_]+, [0-9]+, "/ {
    split($0, field, "\"")
    add(field[2], "", field[4])
    next
}

# One line of --help.
function read_line(line,    head, meaning, short, field)
{
    if (!match(line, /^ +(-[a-z], )?--[a-z-]+([ =][A-Z:=]+)?  +/) && !match(line, /^ +--[a-z-]+ [a-z]/))
        return
    head = substr(line, 1, RLENGTH)
    if (head ~ /[a-z] [a-z]$/)
        head = substr(head, 1, RLENGTH - 1)
    meaning = substr(line, length(head) + 1)
    gsub(/^ +| +$/, "", head)
    if (head ~ /^-[a-z], /) {
        short = substr(head, 1, 2)
        head = substr(head, 5)
    }
    split(head, field, /[ =]/)
    if (short != "")
        add(short, field[2], meaning)
    add(field[1], field[2], meaning)
}

# In C a line ends in \n and a quote; a string may have several.
{
    text = $0
    sub(/^ *f?printf\(([a-z]+, )?/, "", text)
    sub(/^ *"/, "", text)
    parts = split(text, part, /\\n/)
    for (i = 1; i <= parts; i++)
        read_line(part[i])
}

# What may follow an option with this argument; empty: anything, "-": a file.
function candidates(name, argument)
{
    if (argument ~ /^(FILE|DIRECTORY|FILENAME)$/)
        return "-"
    if (name == "--costs")
        return collectives " all"
    if (argument == "COLLECTIVE" || name == "--collectives" || (name == "-c" && command == "nbcbench"))
        return collectives
    if (argument == "COLLECTIVE:ALGORITHM")
        return schedules
    if (argument == "KIND")
        return " hydra openmpi srun"
    if (command == "nbcbench" && name ~ /^(-m|--measure)$/)
        return " time calls overlap outstanding untouched"
    if (command == "nbcsim" && name == "--network")
        return "-"
    return ""
}

function words(    i, text)
{
    for (i = 1; i <= n; i++)
        text = text " " option[i] (command == "nbcrun" && takes[i] != "" ? "=" : "")
    return substr(text, 2)
}

function bash(    i, list)
{
    print "# Completion of " command "(1) for bash. Made by tools/completion.awk."
    print ""
    print "_nbcshim_" command "()"
    print "{"
    print "    local line=${COMP_LINE:0:COMP_POINT} previous word words="
    print "    local current=${line##*[[:blank:]]}"
    print "    previous=${line%\"$current\"}"
    print "    previous=${previous%\"${previous##*[![:blank:]]}\"}"
    print "    previous=${previous##*[[:blank:]]}"
    print "    COMPREPLY=()"
    print "    [[ $current != --*=* ]] || previous=${current%%=*} word=${current#*=}"
    print "    case $previous in"
    for (i = 1; i <= n; i++) {
        if (takes[i] == "")
            continue
        list = candidates(option[i], takes[i])
        if (list == "-")
            print "    " option[i] ") return ;;"
        else
            print "    " option[i] ") words='" substr(list, 2) "' ;;"
    }
    print "    *)"
    if (command == "nbcrun") {
        print "        if [[ $current != -* ]]; then"
        print "            COMPREPLY=($(compgen -c -- \"$current\"))"
        print "            return"
        print "        fi"
    }
    if (command == "nbcsim")
        print "        words='" substr(collectives schedules, 2) " all'"
    print "        [[ $current != -* ]] || words='" words() "'"
    print "        ;;"
    print "    esac"
    print "    COMPREPLY=($(compgen -W \"$words\" -- \"${word-$current}\"))"
    print "    # bash takes a colon and what follows for words of their own."
    print "    if [[ $COMP_WORDBREAKS == *:* && ${word-$current} == *:* ]]; then"
    print "        current=${word-$current}"
    print "        COMPREPLY=(\"${COMPREPLY[@]#\"${current%:*}:\"}\")"
    print "    fi"
    print "    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null"
    print "}"
    print "complete -o default -F _nbcshim_" command " " command
}

function quoted(text)
{
    gsub(/'/, "'\\''", text)
    gsub(/\[/, "\\[", text)
    gsub(/\]/, "\\]", text)
    gsub(/:/, "\\:", text)
    return text
}

function zsh(    i, list, action)
{
    print "#compdef " command
    print "# Completion of " command "(1) for zsh. Made by tools/completion.awk."
    print ""
    print "_arguments -s \\"
    for (i = 1; i <= n; i++) {
        action = ""
        if (takes[i] != "") {
            list = candidates(option[i], takes[i])
            gsub(/:/, "\\:", list)
            action = ":" tolower(takes[i])
            gsub(/:/, " ", action)
            action = ":" substr(action, 2) ":"
            if (list == "-")
                action = action (takes[i] == "DIRECTORY" ? "_files -/" : "_files")
            else if (list != "")
                action = action "(" substr(list, 2) ")"
        }
        print "    '" option[i] (takes[i] == "" ? "" : option[i] ~ /^--/ ? "=" : "+") \
            "[" quoted(means[i]) "]" action "' \\"
    }
    if (command == "nbcrun")
        print "    '*:: :_normal'"
    else if (command == "nbcsim") {
        list = collectives schedules " all"
        gsub(/:/, "\\:", list)
        print "    '*:collective:(" substr(list, 2) ")'"
    } else
        print "    && return 0"
}

END {
    if (shell == "bash")
        bash()
    else
        zsh()
}
