"""The bill of materials of a release: CycloneDX 1.6 as JSON, from the wheels themselves."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any


def bill_of_materials(product: Path, wheels: Iterable[Path]) -> str:
    """``product``: ktriage's own wheel; ``wheels``: those of its libraries. The same wheels give the same text."""
    components: dict[str, dict[str, Any]] = {}
    for wheel in sorted(wheels):
        component = _component(_metadata(wheel), "library")
        components.setdefault(component["purl"], component)["externalReferences"].append(_file(wheel))
    main = _component(_metadata(product), "application") | {"externalReferences": [_file(product)]}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main},
        "components": sorted(components.values(), key=lambda each: str(each["purl"])),
        "dependencies": [{"ref": main["bom-ref"], "dependsOn": sorted(components)}],
    }
    return json.dumps(document, indent=1) + "\n"


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode("utf-8"), headersonly=True)


def _component(metadata: Message, kind: str) -> dict[str, Any]:
    name, version = metadata["Name"].lower().replace("_", "-"), metadata["Version"]
    purl = f"pkg:pypi/{name}@{version}"
    component = {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}
    expression = metadata["License-Expression"]
    named = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier", [])
        if line.startswith("License :: OSI Approved :: ")
    ]
    if expression:
        component["licenses"] = [{"expression": expression}]
    elif named:
        component["licenses"] = [{"license": {"name": each}} for each in named]
    return component | {"externalReferences": []}


def _file(wheel: Path) -> dict[str, Any]:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return {"type": "distribution", "url": wheel.name, "hashes": [{"alg": "SHA-256", "content": digest}]}
