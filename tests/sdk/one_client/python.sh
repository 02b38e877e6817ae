# Python: the program is strictly typed, too.
export MYPYPATH="$PACKAGE/src" PYTHONPATH="$PACKAGE/src" PYTHONDONTWRITEBYTECODE=1
"$TOOLS/.venv/bin/mypy" --strict --no-error-summary "$PROGRAMS/$PROGRAM.py" "$PACKAGE/src"
exec "$TOOLS/.venv/bin/python" "$PROGRAMS/$PROGRAM.py"
