# SPDX-License-Identifier: GPL-3.0-or-later
# Packages for systems: packaging/ has what they consist of besides the installed files. Part of the Makefile.

# Where they are written.
P := package

.PHONY: package package-deb package-rpm tarball tarball-arm64

# The time in packages and archives, looked up once: of the last commit; in an unpacked archive all files have that time.
ifndef SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH := $(or $(if $(wildcard $S/.git),$(shell git -C $S log -1 --format=%ct 2>/dev/null)),$(shell stat -c %Y $S/VERSION))
endif
export SOURCE_DATE_EPOCH

# Each kind that the tools on this machine can make.
package: package-deb package-rpm

# Directories below /usr, whatever the prefix of this build is: the programs find their data relative to
# themselves.
package-deb: all
	@rm -rf $P/root && mkdir -p $P/root
	+@$(MAKE) --no-print-directory -s install-strip DESTDIR=$(abspath $P/root) prefix=/usr bindir=/usr/bin \
	    libdir=/usr/lib/$(shell $(CC) -print-multiarch 2>/dev/null || echo .) includedir=/usr/include \
	    mandir=/usr/share/man datadir=/usr/share
	$(call say,DEB,$P)
	$Q$S/packaging/deb $P/root $(VERSION) $P
	@rm -rf $P/root

# ---- of the static programs

machine = $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
tarball_name = qsf-$(VERSION)-linux-$(machine)
# $(call stage_static,DIRECTORY): bin/ and share/ with the stripped static programs and all that belongs to
# them.
define stage_static
@rm -rf $1 && mkdir -p $1/bin
+@$(MAKE) --no-print-directory -s install-data DESTDIR=$(abspath $1) mandir=/share/man datadir=/share
@cp static/qsf-chat $1/bin/ && $(STRIP) $1/bin/*
@for p in $(filter-out qsf-chat,$(programs)); do ln $1/bin/qsf-chat $1/bin/$$p; done
@mkdir -p $1/share/doc/qsf && cp $S/README.md $S/LICENSE $S/CHANGELOG.md $1/share/doc/qsf/
@$S/packaging/own-data $1/share/qsf
@CC='$(CC)' $S/packaging/licenses $1/share/doc/qsf/licenses static/libs/licenses
endef

tarball: static
	$(call stage_static,$P/static)
	$(call say,TAR,$P/$(tarball_name).tar.gz)
	$Q$S/packaging/tarball $P/static $(tarball_name) $(machine) $P
	@rm -rf $P/static

# The same for ARM64, made on another machine: a build of its own in package/arm64, with Debian's libraries and
# the compiler of gcc-aarch64-linux-gnu. $(call stage_static) works there as here.
arm64_root := $(abspath $P)/arm64-root
arm64_env := PKG_CONFIG_SYSROOT_DIR=$(arm64_root) PKG_CONFIG_LIBDIR=$(arm64_root)/usr/lib/aarch64-linux-gnu/pkgconfig
tarball-arm64:
	$(call say,SYSROOT,$(arm64_root))
	@mkdir -p $P/arm64 && { [ -d $(arm64_root) ] || $S/packaging/sysroot arm64 $(arm64_root); }
	@[ -f $P/arm64/config.mk ] || (cd $P/arm64 && $(arm64_env) $(abs_srcdir)/configure --host=aarch64-linux-gnu \
	    CC='aarch64-linux-gnu-gcc --sysroot=$(arm64_root)' PKG_CONFIG=pkg-config >config.out || { cat config.out; exit 1; })
	+$Q$(arm64_env) $(MAKE) --no-print-directory -C $P/arm64 P=$(abspath $P) \
	    EMULATOR='$(addsuffix  -L $(arm64_root),$(shell command -v qemu-aarch64-static))' tarball

# Made of the static programs, because names and versions of libraries differ between the systems that have RPM.
ifeq ($(shell command -v rpmbuild),)
package-rpm:
	@echo "no RPM package: rpmbuild is not installed (the package is called rpm or rpm-build)"
else
package-rpm: static
	$(call stage_static,$P/rpm/usr)
	$(call say,RPM,$P)
	$Q$S/packaging/rpm $P/rpm $(VERSION) $(machine) $P
	@rm -rf $P/rpm
endif

# ---- recipes of other systems, complete with the checksum of the archive of the sources

.PHONY: recipes

recipes: dist
	@rm -rf $P/homebrew $P/aur && mkdir -p $P/homebrew $P/aur
	$(call say,GEN,$P/homebrew $P/aur)
	@sum=$$(sha256sum $(dist_name).tar.gz | cut -d ' ' -f 1) && for f in homebrew/qsf.rb aur/PKGBUILD; do \
	    sed "s/@SHA256@/$$sum/" $S/packaging/$$f >$P/$$f || exit; done
	$Q$S/packaging/aur/srcinfo $P/aur/PKGBUILD >$P/aur/.SRCINFO
