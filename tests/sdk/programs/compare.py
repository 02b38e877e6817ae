"""Tells where code of hostile descriptions is other code: `compare.py FILE`.

A line of the file is JSON: `{"language", "path", "text", "case"}`, and the harmless case comes first. Two files are the same
code when their syntax trees are, apart from comments and what stands in literals; one with an error in it is no code.
"""

import json
import re
import sys

import tree_sitter
import tree_sitter_bash
import tree_sitter_c_sharp
import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_kotlin
import tree_sitter_php
import tree_sitter_python
import tree_sitter_ruby
import tree_sitter_rust
import tree_sitter_swift
import tree_sitter_typescript

GRAMMARS = {
    "python": tree_sitter_python.language,
    "typescript": tree_sitter_typescript.language_typescript,
    "javascript": tree_sitter_javascript.language,
    "go": tree_sitter_go.language,
    "rust": tree_sitter_rust.language,
    "kotlin": tree_sitter_kotlin.language,
    "java": tree_sitter_java.language,
    "csharp": tree_sitter_c_sharp.language,
    "ruby": tree_sitter_ruby.language,
    "php": tree_sitter_php.language_php,
    "shell": tree_sitter_bash.language,
    "swift": tree_sitter_swift.language,
}
# Comments with what is in them, and what literals hold, innermost first. Each has a node above it, so a space before it: where
# that may be missing, the expression is tried at every letter, which takes eight times as long.
INSIDE = re.compile(
    r" (?:\w+: )?\((?:\w*comment\w*"
    r"|string_content|string_fragment|escape_sequence|character_escape_seq|str_escaped_char|line_str_text"
    r"|string_literal_content|interpreted_string_literal_content|ansi_c_escape)\)"
)


# A text of Bash with something to escape, which this grammar does not always read.
ESCAPED = re.compile(r"\$'(?:\\.|[^'\\])*'", re.DOTALL)
COMMENT = re.compile(r"^ *#.*$", re.MULTILINE)


def code(language: str, parser: tree_sitter.Parser, text: str) -> str | None:
    """The tree as text; none when it has an error."""
    if language == "shell":
        text = ESCAPED.sub("''", COMMENT.sub("", text))
    root = parser.parse(text.encode()).root_node
    if root.has_error:
        return None
    tree = str(root)
    while True:
        smaller = INSIDE.sub("", tree)
        if smaller == tree:
            return tree
        tree = smaller


def main() -> int:
    parsers = {
        name: tree_sitter.Parser(tree_sitter.Language(language())) for name, language in GRAMMARS.items()
    }
    harmless: dict[tuple[str, str], str] = {}
    compared = dict.fromkeys(GRAMMARS, 0)
    wrong = 0
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            one = json.loads(line)
            key = (one["language"], one["path"])
            tree = code(one["language"], parsers[one["language"]], one["text"])
            same = tree is not None and harmless.setdefault(key, tree) == tree
            compared[one["language"]] += 1
            if not same:
                wrong += 1
                if wrong <= 5:
                    why = "is no code" if tree is None else "is other code"
                    print(f"{key[0]} {key[1]}, case {one['case']}, {why}:\n{one['text']}")
    print("compared", json.dumps(compared))
    return int(wrong > 0)


sys.exit(main())
