# The plug-in for MPI keeps any number of messages on their way.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
"$PLUG_IN_TEST" "$PLUG_IN" >out 2>err || fail "the transport over MPI"
finish
