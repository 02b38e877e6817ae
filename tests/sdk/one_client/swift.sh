# Swift: there is no compiler to be had, so it is parsed.
mapfile -t sources < <(find "$PACKAGE" -name '*.swift')
exec "$TOOLS/.venv/bin/python" "$TOOLS/programs/parse_swift.py" "${sources[@]}" "$PROGRAMS/$PROGRAM.swift"
