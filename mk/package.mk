# SPDX-License-Identifier: GPL-3.0-or-later
# Packages for systems: packaging/ has what they consist of besides the installed files. Part of the Makefile.

.PHONY: package package-deb

# The time in packages: of the last commit, or of the newest entry in the changelog.
SOURCE_DATE_EPOCH ?= $(or $(shell git -C $S log -1 --format=%ct 2>/dev/null),$(shell stat -c %Y $S/CHANGELOG.md))
export SOURCE_DATE_EPOCH

package: package-deb

# Directories below /usr, whatever the prefix of this build is: the programs find their data relative to themselves.
package-deb: all
	@rm -rf package/root && mkdir -p package/root
	+@$(MAKE) --no-print-directory -s install-strip DESTDIR=$(CURDIR)/package/root prefix=/usr bindir=/usr/bin \
	    libdir=/usr/lib/$(shell $(CC) -print-multiarch 2>/dev/null || echo .) includedir=/usr/include \
	    mandir=/usr/share/man datadir=/usr/share
	$(call say,DEB,package)
	$Q$S/packaging/deb package/root $(VERSION) package
	@rm -rf package/root
