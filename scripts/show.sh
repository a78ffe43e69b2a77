#!/bin/sh
# hilt at its main job, offline: the demo model reads a file and runs a command in a scratch directory.
set -eu
hilt=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
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
printf '$ hilt -p "%s"\n' "$prompt"
"$hilt" -p "$prompt"
printf '\n$ hilt sessions list\n'
"$hilt" sessions list
