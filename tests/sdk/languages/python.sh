# Python: strictly typed, the programs too.
export MYPYPATH="quakes/src:planets/src:things/src" PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH="$MYPYPATH"
check() { "$TOOLS/.venv/bin/mypy" --strict --no-error-summary "$@"; }
python="$TOOLS/.venv/bin/python"
check "$PROGRAMS/main.py" "$PROGRAMS/exact.py" quakes/src planets/src things/src
check nasty/src
check alone/alone.py loner/loner.py
for package in quakes planets things nasty; do
    (cd "$package" && PYTHONPATH=src "$python" -m unittest discover --quiet tests) 2>&1
done
for package in quakes planets; do "$python" "$package/examples/first_call.py"; done
sed 's/\bquakes\b/alone/' quakes/examples/first_call.py > alone/first_call.py
"$python" alone/first_call.py
for snippet in quakes things plain; do "$python" "snippets/$snippet"; done
$BESET "$python" "$PROGRAMS/exact.py"
exec $BESET "$python" "$PROGRAMS/main.py"
