#!/bin/sh
# hilt at its main job, offline, in a scratch directory: the demo model reads a file and runs a command. Then an
# extension gives it a tool, adds a slash command, and refuses a command that cannot be undone.
set -eu
hilt=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
repository=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM
mkdir "$scratch/project"
cd "$scratch/project"
export HILT_HOME="$scratch/home"
unset ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY GOOGLE_API_KEY KIMI_API_KEY MOONSHOT_API_KEY || true

cat > notes.txt <<'NOTES'
Ship on Friday.
Ask Ada about the parser.
NOTES

prompt='read notes.txt and then run `wc -l notes.txt`'
printf "$ hilt -p '%s'\n" "$prompt"
"$hilt" -p "$prompt"
printf '\n$ hilt sessions list\n'
"$hilt" sessions list

# The answer alone: what the face says on stderr was shown above, and is shown here when something fails.
extended() {
    printf "\n$ hilt --ext examples/extensions/project-kit -p '%s'\n" "$1"
    "$hilt" --ext examples/extensions/project-kit -p "$1" 2> "$scratch/progress" || {
        cat "$scratch/progress" >&2
        exit 1
    }
}

ln -s "$repository/examples" examples
echo 'def parse(text): ...  # TODO: ask Ada what an empty text means' > parser.py
printf '\nNow with an extension: a program that offers a tool, a slash command and a guard.\n'
extended 'todo_scan'
extended '/todos parser.py'
extended 'run `git push --force --dry-run`'

printf '\nAll this and more is in the terminal interface. To open it: %s\n' "$1"
