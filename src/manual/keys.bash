_@NAME@_key() {
    local code=$? last
    if [[ $READLINE_LINE != *[![:space:]]* ]]; then
        # A request to be read and changed. Another press asks.
        last=$(HISTTIMEFORMAT='' history 1)
        if [[ $last =~ ^[[:space:]]*[0-9]+\*?[[:space:]]+(.*)$ ]]; then
            last=${BASH_REMATCH[1]//[[:cntrl:]]/ }
            READLINE_LINE="fix: $last, exit status $code"
            READLINE_POINT=${#READLINE_LINE}
        fi
        return 0
    fi
    local prompt=${PS1@P} typed=${READLINE_LINE//[[:cntrl:]]/?} text saved rows row
    prompt=${prompt//[$'\001\002']/}
    # Bash has wiped the line and its last line of the prompt, and draws both again where the cursor is left. In the
    # meantime a copy is shown. Nothing may scroll after the cursor was saved; there are no more columns than bytes.
    text=${prompt##*$'\n'}$typed$'\n'
    rows=$(LC_ALL=C; echo "$((${#text} / ${COLUMNS:-80} + 3))")
    for ((row = 0; row < rows; row++)); do echo; done >&2
    printf '\e[%dA\r\e7%sq: waiting for the command\e8' "$rows" "$text" >&2
    saved=$(trap -p INT)
    # Ctrl-C ends q, and leaves the line.
    trap : INT
    if text=$(_@NAME@_command "$READLINE_LINE"); then
        READLINE_LINE=$text READLINE_POINT=${#text}
        printf '\e[J' >&2
    else
        # What stands below the line would be in the way of the next output. So the copy stays, and the line follows it.
        printf '\e[J%s%s\n%s\n' "${prompt##*$'\n'}" "$typed" "${text:-q: interrupted}" >&2
    fi
    trap - INT
    eval "$saved"
}

for _q_keymap in emacs vi-insert; do
    bind -m "$_q_keymap" -x "\"${Q_KEY:-\\C-xq}\": _@NAME@_key"
done
unset _q_keymap
