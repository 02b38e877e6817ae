"""Tells where files are no Swift: `parse_swift.py FILE...`."""

import sys

import tree_sitter
import tree_sitter_swift

parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_swift.language()))
is_wrong = False
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        waiting = [parser.parse(file.read()).root_node]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            is_wrong = True
            print(f"{path}:{node.start_point.row + 1}: not Swift")
        elif node.has_error:
            waiting.extend(node.children)
sys.exit(is_wrong)
