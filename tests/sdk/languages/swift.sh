# Swift: there is no compiler to be had, so it is parsed.
mapfile -t sources < <(find quakes planets things nasty alone loner -name '*.swift')
for snippet in quakes things; do cp "snippets/$snippet" "snippet-$snippet.swift"; done
exec "$TOOLS/.venv/bin/python" "$TOOLS/programs/parse_swift.py" "${sources[@]}" snippet-*.swift "$PROGRAMS"/{main,exact}.swift
