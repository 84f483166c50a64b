# Ends the program below, and all that it started, when whoever started it is gone.
# The text runs as `sh -c TEXT guard PROGRAM ARGS..`; guard.rs tells why it is made like this.
#   0  the lifeline: never written to, closed by the end of the starter
#   1  the all-clear: a line when the guard stands, closed once nothing is left
#   2  the log of the program
exec 3<&0 4>&1
( (
    trap '' HUP INT QUIT TERM TSTP TTIN TTOU
    exec 5>&2 </dev/null >/dev/null 2>&1

    while read -r _ <&3; do :; done

    # The tree below the program. Each is stopped before its children are read, so it starts no more of them.
    ours=
    todo=$$
    while [ -n "$todo" ]; do
        below=
        for pid in $todo; do
            kill -STOP "$pid"
            for list in /proc/"$pid"/task/*/children; do
                children=
                read -r children <"$list"
                below="$below${children:+ $children}"
            done
        done
        ours="$ours $todo"
        todo=$below
    done
    kill -KILL $ours

    # What lost its parent before that is not in the tree, but it still holds the log.
    # Then wait until all are gone. A killed process holds its ports and files for a moment, and /proc hides
    # them from us by then; its state is shown to everyone. A process with threads is gone with the last one.
    # `passes` is a bound for a process that the kernel cannot end.
    passes=0
    while [ -n "$ours" ] && [ "$passes" -lt 2000 ]; do
        passes=$((passes + 1))
        for process in /proc/[0-9]*; do
            if [ "$process/fd/2" -ef /proc/self/fd/5 ] || [ "$process/fd/1" -ef /proc/self/fd/5 ]; then
                kill -KILL "${process#/proc/}"
                ours="$ours ${process#/proc/}"
            fi
        done
        left=
        for pid in $ours; do
            stat=
            read -r stat <"/proc/$pid/stat"
            set -- /proc/"$pid"/task/[0-9]*
            case "$#${stat##*) }" in
                1 | 1Z* | 1X*) ;;
                *) left="$left $pid" ;;
            esac
        done
        ours=$left
    done
) & )
echo >&4
exec "$@" </dev/null >&2 3<&- 4>&-
