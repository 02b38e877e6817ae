#!/usr/bin/env python3
"""What the program is made of, from cargo's own list of it.

  components.py bill VERSION TARGET      a software bill of materials: CycloneDX 1.6, JSON
  components.py licences TARGET          the licences of others, as their packages carry them

Both go to standard output, and are the same whenever they are written: times come from SOURCE_DATE_EPOCH, which is
needed for the bill. A package is required when its code is in the program, and excluded when it only works while the
program is built: build scripts, procedural macros, and what these use. Python 3.11 or newer; nothing is downloaded
that cargo has.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import uuid
from datetime import datetime, timezone

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = "farthing"
# What the program has in it besides packages: the console's font.
FONT = ("Inter, a font: OFL-1.1", REPOSITORY / "node" / "console" / "assets" / "inter-LICENSE.txt")
LICENCE_FILE = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)", re.IGNORECASE)


def cargo(*arguments):
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True).stdout


def built(target):
    """Names and versions of all that is compiled. `cargo metadata` also has packages behind features that are off."""
    lines = cargo("tree", "--workspace", "--edges", "normal,build", "--target", target, "--prefix", "none", "--format", "{p}")
    return {tuple(line.split()[:2]) for line in lines.splitlines() if line}


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


class Parts:
    """The packages of the program: `required` and `excluded` ids, and who uses whom."""

    def __init__(self, target):
        metadata = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))
        compiled = built(target)
        self.packages = {
            package["id"]: package
            for package in metadata["packages"]
            if (package["name"], f"v{package['version']}") in compiled
        }
        self.uses = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
        members = set(metadata["workspace_members"])
        [self.program] = [id for id in members if self.packages[id]["name"] == PROGRAM]
        self.ours = members
        self.required = self.reached({None}, through_macros=False)
        self.excluded = self.reached({None, "build"}, through_macros=True) - self.required

    def reached(self, kinds, through_macros):
        """All packages that the program comes to by dependencies of these kinds; `None` is cargo's word for a plain one."""
        found, open_ends = {self.program}, [self.program]
        while open_ends:
            for id in self.used_by(open_ends.pop(), kinds):
                if id not in found and (through_macros or not is_macro(self.packages[id])):
                    found.add(id)
                    open_ends.append(id)
        return found

    def used_by(self, id, kinds):
        return [
            dependency["pkg"]
            for dependency in self.uses[id]
            if dependency["pkg"] in self.packages and any(kind["kind"] in kinds for kind in dependency["dep_kinds"])
        ]

    def in_order(self, ids):
        return sorted((self.packages[id] for id in ids), key=lambda package: (package["name"], package["version"]))


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def licence(package):
    """The SPDX expression; old packages separate alternatives by a slash."""
    if not package["license"]:
        sys.exit(f"{package['name']} {package['version']} names no licence")
    return re.sub(r"\s*/\s*", " OR ", package["license"])


def checksums():
    with open(REPOSITORY / "Cargo.lock", "rb") as lock:
        packages = tomllib.load(lock)["package"]
    return {(package["name"], package["version"]): package.get("checksum") for package in packages}


def component(package, scope, sums):
    described = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "scope": scope,
        "licenses": [{"expression": licence(package)}],
        "purl": reference(package),
    }
    checksum = sums.get((package["name"], package["version"]))
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        described["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return described


def bill(version, target):
    parts = Parts(target)
    sums = checksums()
    program = parts.packages[parts.program]
    all_ids = parts.required | parts.excluded
    components = [
        component(package, "required" if package["id"] in parts.required else "excluded", sums)
        for package in parts.in_order(all_ids - {parts.program})
    ]
    kinds = {None, "build"}
    dependencies = [
        {
            "ref": reference(package),
            "dependsOn": sorted({reference(parts.packages[id]) for id in parts.used_by(package["id"], kinds)}),
        }
        for package in parts.in_order(all_ids)
    ]
    compiler = tomllib.loads((REPOSITORY / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    made_at = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    described = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": made_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tools": {"components": [{"type": "application", "name": "rustc", "version": compiler}]},
            "component": {
                "type": "application",
                "bom-ref": reference(program),
                "name": PROGRAM,
                "version": version,
                "licenses": [{"expression": licence(program)}],
                "properties": [{"name": "cargo:target", "value": target}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(described, sort_keys=True))
    return json.dumps({**described, "serialNumber": f"urn:uuid:{number}"}, indent=1) + "\n"


def licences(target):
    """Each text once, under the packages that carry it."""
    parts = Parts(target)
    carried = {}
    head = [
        "Farthing is made with the packages below. Each is under the licence that stands beside it; the texts follow.",
        "The source of each is in Rust's public registry, under its name and version.",
        "",
    ]
    for package in parts.in_order(parts.required - parts.ours):
        name = f"{package['name']} {package['version']}"
        head.append(f"{name}: {licence(package)}")
        folder = pathlib.Path(package["manifest_path"]).parent
        for file in sorted(folder.iterdir()):
            if file.is_file() and LICENCE_FILE.match(file.name):
                carried.setdefault(file.read_text(errors="replace").strip(), []).append(name)
    name, file = FONT
    head.append(name)
    carried.setdefault(file.read_text().strip(), []).append(name)
    texts = [f"{'-' * 78}\n{', '.join(names)}\n\n{text}\n" for text, names in carried.items()]
    return "\n".join(head) + "\n\n" + "\n".join(texts)


def main(arguments):
    match arguments:
        case ["bill", version, target]:
            sys.stdout.write(bill(version, target))
        case ["licences", target]:
            sys.stdout.write(licences(target))
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
