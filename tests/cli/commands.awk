# Commands in the blocks of a page: one a line, with the lines that they go on in and without remarks.  Of blocks that are `sh`, too, with
# -v sh=1; in lines between blocks that are indented with -v indented=1.
function is_command(line)
{
    return line ~ /^([A-Z_]+=[^ ]+ +)*(temper|mpirun|srun|sbatch|make|cmake|ctest|pip|hf|git|docker|python3?|sudo|apt|(scripts|bench|tools|tests|build)\/[a-z_\/.-]+)( |$)|^export [A-Z]/
}
/^ *```/ {
    inside = !inside
    is_sh = inside && /```sh$/
    is_typed = inside && !is_sh && !/```$/
    whole = ""
    next
}
!inside && !(indented && /^    /) { whole = ""; next }
is_typed || (is_sh && !sh) { next }
{
    sub(/^ +/, "")
    whole = whole $0
    if (sub(/\\$/, "", whole))
        next
    sub(/ +# .*$/, "", whole)
    if (is_command(whole))
        print whole
    whole = ""
}
