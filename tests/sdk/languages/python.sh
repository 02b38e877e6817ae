# Python: strictly typed, the program too.
export MYPYPATH="quakes/src:planets/src" PYTHONPATH="quakes/src:planets/src" PYTHONDONTWRITEBYTECODE=1
"$TOOLS/.venv/bin/mypy" --strict --no-error-summary "$PROGRAMS/main.py" quakes/src planets/src
"$TOOLS/.venv/bin/mypy" --strict --no-error-summary nasty/src
exec "$TOOLS/.venv/bin/python" "$PROGRAMS/main.py"
