# Between bash and what clap's script makes of it. What bash inserts is read as if it was typed, so it is quoted: a file or a tag of a
# manifest that somebody else wrote must not become a command. And `--option=value` is three words to bash, and one here.
_shotlist_quoted() {
    local -a words=()
    local place=$COMP_CWORD i
    for i in "${!COMP_WORDS[@]}"; do
        if [[ ${COMP_WORDS[i]} == "=" && ${COMP_WORDS[i-1]} == --* ]]; then
            if ((i == COMP_CWORD)); then words+=(""); else ((i < COMP_CWORD)) && ((place -= 1)); fi
        else
            words+=("${COMP_WORDS[i]}")
        fi
    done
    local -a COMP_WORDS=("${words[@]}")
    local COMP_CWORD=$place
    _clap_complete_shotlist "$@"
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=$(printf %q "${COMPREPLY[i]}")
    done
}
