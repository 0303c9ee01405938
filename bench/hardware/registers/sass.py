"""What the programs here that read nvdisasm's listings share."""
import argparse
import re

TEXT = re.compile(r"\.text\.(\S+):")
LABEL = re.compile(r"(\.L_x_\d+):")


def read_arguments(description, *words):
    """`words`, of which those with dashes have a default, FILE... and --nvdisasm."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for word in words:
        parser.add_argument(word, **({"default": word.strip("-")} if word.startswith("-") else {}))
    parser.add_argument("files", nargs="+")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    return parser.parse_args()


def constants_of(name):
    """The numbers of a kernel's template arguments, out of its mangled name; the name where there are none."""
    return " ".join(re.findall(r"L[ib](\d+)E", name)) or name
