# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of tar_fuzz and tar_index_fuzz, with the same bytes in every run."""

import io
import pathlib
import struct
import tarfile

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
LONG = "folder/" * 20 + "0001"


def archive(names: list[str], fmt: int, **attributes: object) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as tar:
        for number, name in enumerate(names):
            content = b"7" if name.endswith("cls") else bytes(range(number + 3))
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for attribute, value in attributes.items():
                setattr(member, attribute, value)
            tar.addfile(member, io.BytesIO(content))
    content = out.getvalue().rstrip(b"\0")
    return content + bytes(-len(content) % 512 + 1024)  # two blocks of zeros, not tarfile's 10 KiB records


def main() -> None:
    folder = pathlib.Path(__file__).parent / "tar"
    folder.mkdir(exist_ok=True)
    seeds = {}
    for name, fmt in FORMATS.items():
        seeds[f"{name}.tar"] = archive(["a/1.jpg", "a/1.cls", "2.jpg", "2.cls"], fmt)
        seeds[f"{name}_long.tar"] = archive([LONG + ".jpg", LONG + ".cls"], fmt)
    seeds["pax_headers.tar"] = archive(["1.jpg"], tarfile.PAX_FORMAT, pax_headers={"path": "real.jpg", "comment": "x"})
    seeds["pax_sparse.tar"] = archive(["1.jpg"], tarfile.PAX_FORMAT, pax_headers={"GNU.sparse.name": "real.jpg"})
    seeds["links.tar"] = archive(["1.jpg"], tarfile.GNU_FORMAT, type=tarfile.LNKTYPE, linkname="t" * 120)
    seeds["odd_names.tar"] = archive(
        ["__meta__", "README", "x/.hidden.jpg", "1.__bad__", "1.jpg", "1.JPG"], tarfile.USTAR_FORMAT
    )
    seeds["cut.tar"] = seeds["ustar.tar"][:-1024]
    seeds["joined.tar"] = seeds["ustar.tar"] + seeds["gnu.tar"]
    seeds["empty.tar"] = bytes(1024)
    for name, content in seeds.items():
        (folder / name).write_bytes(content)
    indexes = folder.parent / "tar_index"
    indexes.mkdir(exist_ok=True)
    (indexes / "dali_1.1.idx").write_text("v1.1 2\njpg 512 3 cls 1536 1\njpg 2560 5 cls 3584 1\n")
    (indexes / "dali_1.2.idx").write_text("v1.2 2\njpg 512 3 a/1.jpg cls 1536 1 a/1.cls\njpg 2560 5 2.jpg\n")
    (indexes / "energon.idx").write_bytes(struct.pack("<3Q", 0, 2048, 4096))


if __name__ == "__main__":
    main()
