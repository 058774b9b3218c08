# tools/check-circles finds two files that call each other, unless they are listed, and what is listed and gone.
. "$SOURCE/tests/cli/lib.sh"
mkdir -p build/src/CMakeFiles/program.dir/low
objects=build/src/CMakeFiles/program.dir/low
echo 'int b(int); int a(int x) { return x ? b(x - 1) : 0; }' >a.c
echo 'int a(int); int b(int x) { return x ? a(x - 1) : 1; }' >b.c
echo 'int a(int); int c(void) { return a(3); }' >c.c
for file in a b c; do ${CC:-cc} -c -o $objects/$file.c.o $file.c || fail "no compiler"; done

checks() { # LIST EXPECTED
    printf '%b' "$1" >list
    said=$("$SOURCE/tools/check-circles" build list)
    [ "$said" = "$2" ] || fail "says '$said', not '$2'"
}
checks "" "check-circles: call each other in a circle: low/a low/b"
checks "low/a low/b\n" ""
checks "low/a low/b low/c\n" ""
checks "low/a low/b\nlow/c low/d\n" "check-circles: is no circle any more, remove it from the list: low/c low/d"
"$SOURCE/tools/check-circles" build /dev/null >/dev/null && fail "status 0 with a circle"
finish
