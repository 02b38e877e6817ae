# Python: the program is strictly typed, too.
export MYPYPATH=shelf/src PYTHONPATH=shelf/src PYTHONDONTWRITEBYTECODE=1
"$TOOLS/.venv/bin/mypy" --strict --no-error-summary "$PROGRAMS/pages.py" shelf/src
exec "$TOOLS/.venv/bin/python" "$PROGRAMS/pages.py"
