# Splits a command line into words, one a line, as a shell does, but expands nothing. The argument of an
# option that may stand apart from it is joined to it: -I dir becomes -Idir, -Xlinker word -Wl,word.

function add(c)
{
    word = word c
    inside = 1
}

function end_word()
{
    if (!inside)
        return
    if (option != "") {
        print option word
        option = ""
    } else if (word == "-Xlinker")
        option = "-Wl,"
    else if (word ~ /^-([IDLl]|isystem)$/)
        option = word
    else
        print word
    word = ""
    inside = 0
}

{
    text = text $0 "\n"
}

END {
    single = "\047"
    n = length(text)
    for (i = 1; i <= n; i++) {
        c = substr(text, i, 1)
        if (quote != "" && c == quote)
            quote = ""
        else if (quote == single)
            add(c)
        else if (c == "\\") {
            following = substr(text, ++i, 1)
            if (quote != "" && following !~ /[$`"\\]/)
                add(c)
            if (following != "\n")
                add(following)
        } else if (quote != "")
            add(c)
        else if (c == single || c == "\"") {
            quote = c
            inside = 1
        } else if (c ~ /[ \t\n]/)
            end_word()
        else
            add(c)
    }
    end_word()
}
