"""Archives made by hand, for tests."""

import io
import tarfile
import zipfile


def zip_bytes(members, compression=zipfile.ZIP_STORED):
    """A zip file of (name, content) pairs; names are written as they are, twice if given twice."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return buffer.getvalue()


def tar_gz_bytes(members):
    """A .tar.gz file of (name, content) pairs; a content of None is a symbolic link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/hostname"
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
