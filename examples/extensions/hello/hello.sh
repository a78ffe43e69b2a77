#!/bin/sh
# The smallest extension there is: one slash command, and nothing but a shell.
echo '{"type":"hello","name":"hello","version":"1.0.0"}'
echo '{"type":"register_command","name":"hello","description":"say hello to somebody"}'
echo '{"type":"ready"}'
while IFS= read -r line; do
  case $line in
  '{"type":"command_invoked"'*)
    id=$(printf '%s\n' "$line" | sed 's/^{"type":"command_invoked","id":"\([^"]*\)".*/\1/')
    case $line in *'"name":"hello"'*) ;; *)
      printf '{"type":"command_response","id":"%s","error":"unknown command"}\n' "$id"
      continue
      ;;
    esac
    # What was typed behind the command comes and goes as JSON, so its quotes and backslashes stay escaped.
    who=$(printf '%s\n' "$line" | sed -n 's/.*"args":"\(.*\)"}$/\1/p')
    printf '{"type":"command_response","id":"%s","action":"display","display":"hello, %s"}\n' "$id" "${who:-world}"
    ;;
  '{"type":"shutdown"'*) exit 0 ;;
  esac
done
