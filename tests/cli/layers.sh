# tools/check-layers finds what it is for: a cycle of folders, an include that LAYERS does not allow, one that is not
# spelled from src/, a type that exists twice, a tensor's name that is taken apart.  Of a sound tree it says nothing.
. "$SOURCE/tests/cli/lib.sh"
tree() { # a sound tree of two folders
    rm -rf tree
    mkdir -p tree/src/low tree/src/high tree/include/temper
    printf 'low:\nhigh: low\n' >tree/src/LAYERS
    echo 'typedef struct { int x; } tp_low;' >tree/src/low/low.h
    printf '#include "low/low.h"\ntypedef struct tp_high tp_high;\n' >tree/src/high/high.h
    printf '#include "high/high.h"\nstruct tp_high { struct { int y; } z; };\ntypedef int mine;\n' >tree/src/high/high.c
    printf 'typedef int mine;\ntypedef struct tp_high tp_high;\n' >tree/src/low/low.c
}
refuses() { # WHAT: the checker fails and says just this
    said=$("$SOURCE/tools/check-layers" tree) && fail "accepts: $1"
    [ "$said" = "check-layers: $1" ] || fail "says '$said', not '$1'"
}

tree
said=$("$SOURCE/tools/check-layers" tree) || fail "refuses a sound tree"
[ -z "$said" ] || fail "says '$said' of a sound tree"

printf 'low: high\nhigh: low\n' >tree/src/LAYERS
refuses "LAYERS: a cycle: low -> high -> low"
tree
echo '#include "high/high.h"' >>tree/src/low/low.c
refuses "low/low.c:3: low may not include high"
tree
echo '#include "low.h"' >>tree/src/low/low.c
refuses 'low/low.c:3: "low.h" is not spelled from src/'
tree
mkdir tree/src/other
touch tree/src/other/a.c
refuses "other/a.c: folder other is not in LAYERS"
tree
echo 'low/low.h: low' >>tree/src/LAYERS
refuses "high/high.h:1: high may not include low/low.h"
tree
echo 'typedef enum { A, B } tp_low;' >tree/include/temper/low.h
refuses "tp_low: is the name of types in include/temper/low.h and src/low/low.h"
tree
mkdir -p tree/src/engine
printf 'low:\nhigh: low\nengine: low\n' >tree/src/LAYERS
echo 'int f(const struct t *x) { return strncmp(x->name, "grad.", 5); }' >tree/src/engine/a.c
refuses "engine/a.c:1: strncmp() takes a name apart: ask the tensor's record"
tree
echo 'struct tp_high { int z; };' >>tree/src/low/low.c
refuses "tp_high: is the name of types in src/high/high.c and src/low/low.c"
tree
echo 'typedef void (*tp_low)(int x);' >>tree/src/high/high.c
refuses "tp_low: is the name of types in src/high/high.c and src/low/low.h"
finish
