# Runs the command that is its argument, with the line on stdin as "$1": a value is in no argv.
IFS= read -r value; exec </dev/null; command=$1; set -- "$value"; unset value; eval "$command"
