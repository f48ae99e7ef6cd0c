# $1 a command. Runs it with the line on stdin as its "$1", so that the value is in no argv.
IFS= read -r value; exec </dev/null; command=$1; set -- "$value"; unset value; eval "$command"
