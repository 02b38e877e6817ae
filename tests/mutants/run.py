#!/usr/bin/env python3
"""Breaks lines that keep a promise, and runs the test that must notice each break.

    tests/mutants/run.py                  runs all groups; this takes hours
    tests/mutants/run.py --group A1       runs one group
    tests/mutants/run.py --only 3,17      runs these mutants only
    tests/mutants/run.py --check          builds nothing: checks that every mutant fits the source

Each file beside this program is a group: mutants that can be in one build, because none breaks the test of another, but for those
that are alone. A mutant has these fields:

    number    unique in all groups; a new mutant takes the next number
    package   the package of the test, unless it is that of the changed file
    target    where the test is: "bin:NAME" for a program, NAME for a file or folder of the package's `tests`, or nothing for
              the library
    test      the full name of the test, with its modules
    promise   what the test proves, in one sentence
    file      the file that is changed
    old, new  the text to replace, which is exactly once in the file, and the broken text
    alone     true if the mutant needs a build of its own: a simulation judges everything, so any other mutant breaks its test, too

The result of a mutant is `red` (the test failed, as it must), `time-out` (the test did not end), `GREEN` (the test passed: it does
not prove the promise) or `none` (the test did not run). The program ends with 1 if a result is GREEN or none.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SECONDS_MAX = 300


def git(*arguments):
    return subprocess.check_output(["git", *arguments], cwd=ROOT, text=True).splitlines()


def read(path):
    return path.read_bytes().decode()


def package_folders():
    """The folder of each package by its name."""
    folders = {}
    for manifest in git("ls-files", "--", "Cargo.toml", "*/Cargo.toml"):
        name = re.search(r'^name = "(.*)"', read(ROOT / manifest), re.M)
        if name:
            folders[name[1]] = (ROOT / manifest).parent
    return folders


def mutants_of(path, folders):
    """The mutants of a group, each with its package and target."""
    mutants = json.loads(read(path))
    for mutant in mutants:
        changed = ROOT / mutant["file"]
        around = [name for name, folder in folders.items() if changed.is_relative_to(folder)]
        mutant.setdefault("package", max(around, key=lambda name: len(folders[name].parts), default=""))
        mutant.setdefault("target", "lib")
    return mutants


def builds(mutants):
    """The mutants of a group, build by build."""
    together = [mutant for mutant in mutants if not mutant.get("alone")]
    alone = [[mutant] for mutant in mutants if mutant.get("alone")]
    return [together, *alone] if together else alone


def apply(mutants):
    """Returns the whole and the broken texts of the files by their paths, and the problems of mutants by their numbers."""
    whole, broken, problems, done = {}, {}, {}, set()
    for mutant in mutants:
        change = mutant["file"], mutant["old"], mutant["new"]
        path = ROOT / mutant["file"]
        if change in done:
            continue  # Two tests notice the same break.
        if not path.is_file():
            problems[mutant["number"]] = f"{mutant['file']} does not exist"
            continue
        whole.setdefault(path, read(path))
        times = whole[path].count(mutant["old"])
        if times != 1:
            problems[mutant["number"]] = f"the old text is {times} times in {mutant['file']}, not once"
        elif broken.get(path, whole[path]).count(mutant["old"]) != 1:
            problems[mutant["number"]] = f"another mutant of the group changes the same text of {mutant['file']}"
        else:
            broken[path] = broken.get(path, whole[path]).replace(mutant["old"], mutant["new"])
            done.add(change)
    return whole, broken, problems


def lacks_test(mutant, folders):
    """Says what is wrong with the test that a mutant names, or nothing."""
    folder, target = folders.get(mutant["package"]), mutant["target"]
    if not folder:
        return f"the package {mutant['package']} does not exist"
    if target == "lib":
        place = folder / "src"
    elif target.startswith("bin:"):
        place = folder / "src" / "bin" / target[len("bin:"):]
    else:
        place = folder / "tests" / target
    files = [*place.rglob("*.rs"), *place.parent.glob(f"{place.name}.rs")]
    name = mutant["test"].split("::")[-1]
    # A macro makes tests of names that stand in a list.
    if any(re.search(rf"\bfn {name}\(|^ *(\w+: )?{name};?$", read(file), re.M) for file in files):
        return None
    return f"{place.relative_to(ROOT)} has no test `{name}`"


def check(groups, folders):
    seen, problems = [], []
    for group, mutants in groups.items():
        unfit = {}
        for one_build in builds(mutants):
            unfit |= apply(one_build)[2]
        for mutant in mutants:
            number = mutant["number"]
            found = [unfit.get(number), lacks_test(mutant, folders), "the number is taken" if number in seen else None]
            seen.append(number)
            problems += [f"{number} ({group}): {problem}" for problem in found if problem]
    print("\n".join([*problems, f"{len(seen)} mutants, {len(problems)} problems"]))
    return not problems


def cargo(*arguments):
    print("cargo", *arguments, flush=True)
    done = subprocess.run(["cargo", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else None


def build(mutants, folders):
    """Returns the test programs by package and target, or nothing if the group does not compile."""
    # Tests in `tests/` start the programs of the workspace.
    starting = [one for one in mutants if is_suite(one["target"]) and folders[one["package"]].is_relative_to(ROOT / "tests")]
    if starting and cargo("build", "--workspace", "--bins", "--locked") is None:
        return None
    chosen = []
    for target in sorted({mutant["target"] for mutant in mutants}):
        chosen += ["--test", target] if is_suite(target) else ["--lib"] if target == "lib" else ["--bin", target[4:]]
    # The models hold files of other packages, whose unit tests do not build there.
    others = [] if any(mutant["package"] == "farthing-models" for mutant in mutants) else ["--exclude", "farthing-models"]
    built = cargo("test", "--workspace", *others, "--locked", *chosen, "--no-run", "--message-format=json-render-diagnostics")
    if built is None:
        return None
    names = {str(folder / "Cargo.toml"): package for package, folder in folders.items()}
    programs = {}
    for message in (json.loads(line) for line in built if line.startswith("{")):
        if message.get("reason") != "compiler-artifact" or not message["profile"]["test"] or not message["executable"]:
            continue
        kinds, name = message["target"]["kind"], message["target"]["name"]
        target = name if "test" in kinds else f"bin:{name}" if "bin" in kinds else "lib"
        package = names.get(str(pathlib.Path(message["manifest_path"]).resolve()))
        programs[package, target] = message["executable"]
    return programs


def is_suite(target):
    return target != "lib" and not target.startswith("bin:")


def run(mutant, program, folder):
    """Runs the test of a mutant; returns the result and a line that explains it."""
    # With CI set, a test whose tools are missing fails, which would look like a test that noticed.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            [program, "--exact", mutant["test"], "--nocapture"], cwd=folder, env=environment,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )
        try:
            code = child.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            # The test, and the processes that it started.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            child.wait()
        output.seek(0)
        lines = output.read().decode(errors="replace").splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    if code is None:
        return "time-out", f"did not end within {SECONDS_MAX} seconds"
    if "running 0 tests" in lines:
        return "none", f"{mutant['package']} has no test {mutant['test']}"
    skipped = [line for line in lines if line.startswith("SKIPPED")]
    if code == 0:
        return ("none", skipped[-1]) if skipped else ("GREEN", "the test passed")
    at = max((at for at, line in enumerate(lines) if "panicked at" in line or line.startswith("Error:")), default=None)
    return "red", " ".join(lines[at:at + 2] if at is not None else lines[-1:])[:200]


def run_group(group, mutants, folders):
    """Returns (mutant, result, line) for each mutant; the files are whole again afterwards."""
    whole, broken, _ = apply(mutants)
    others = set(git("ls-files", "--others", "--exclude-standard"))
    try:
        for path, text in broken.items():
            path.write_bytes(text.encode())
        print(f"{group}: {len(mutants)} mutants", flush=True)
        programs = build(mutants, folders)
        results = []
        for mutant in mutants:
            program = (programs or {}).get((mutant["package"], mutant["target"]))
            if program:
                began = time.monotonic()
                result, line = run(mutant, program, folders[mutant["package"]])
                line = f"{time.monotonic() - began:.0f} s: {line}"
            else:
                result, line = "none", "the group does not compile" if programs is None else "the test was not built"
            results.append((mutant, result, line))
            print(f"{mutant['number']:>4}  {result:<8}  {mutant['promise']}\n      {line}", flush=True)
        return results
    finally:
        # A second Ctrl-C must not leave a broken file.
        stop = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for path, text in whole.items():
            path.write_bytes(text.encode())
        # Inputs that failed on purpose are no known inputs.
        for path in set(git("ls-files", "--others", "--exclude-standard")) - others:
            if "proptest-regressions" in path:
                (ROOT / path).unlink()
        for path in git("diff", "--name-only"):
            if "proptest-regressions" in path:
                git("checkout", "--", path)
        signal.signal(signal.SIGINT, stop)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", help="the name of one group, such as A1")
    parser.add_argument("--only", metavar="N,…", help="the numbers of mutants, separated by commas")
    parser.add_argument("--check", action="store_true", help="check that the mutants fit the source; build nothing")
    given = parser.parse_args()
    folders = package_folders()
    groups = {path.stem: mutants_of(path, folders) for path in sorted(HERE.glob("*.json"))}
    if given.group:
        if given.group not in groups:
            sys.exit(f"There is no group {given.group}. The groups are: {', '.join(groups)}")
        groups = {given.group: groups[given.group]}
    if given.only:
        only = {int(number) for number in given.only.split(",")}
        groups = {group: [one for one in mutants if one["number"] in only] for group, mutants in groups.items()}
        groups = {group: mutants for group, mutants in groups.items() if mutants}
    if not groups:
        sys.exit("No mutant has one of these numbers.")
    fits = check(groups, folders)
    if given.check or not fits:
        sys.exit(0 if fits else 1)
    changed = git("status", "--porcelain", "--untracked-files=no")
    if changed:
        sys.exit("The tree has changes. Commit or undo them first:\n" + "\n".join(changed))
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, lambda *_: sys.exit("Stopped. The files are as they were before."))
    each_build = [(group, one_build) for group, mutants in groups.items() for one_build in builds(mutants)]
    results = [one for group, one_build in each_build for one in run_group(group, one_build, folders)]
    ends = [result for _, result, _ in results]
    print(", ".join(f"{ends.count(end)} {end}" for end in ("red", "time-out", "GREEN", "none")))
    for mutant, result, line in results:
        if result in ("GREEN", "none"):
            print(f"{mutant['number']:>4}  {result:<8}  {mutant['promise']}\n      {mutant['test']}: {line}")
    sys.exit(1 if "GREEN" in ends or "none" in ends else 0)


if __name__ == "__main__":
    main()
