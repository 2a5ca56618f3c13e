"""The log dirs of a broker as they lie on a disk, read without the broker and never written.

All but :mod:`backends.disk_scan.scan_script` needs only the standard library of Python 3.8: ``ktriage disk script``
prints it, with :mod:`backends.log_segments`, as one file for hosts where nothing can be installed.
"""
