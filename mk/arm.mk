# SPDX-License-Identifier: GPL-3.0-or-later
# The kernels for 64-bit ARM, checked and counted in an emulator on another machine; part of the Makefile.

.PHONY: check-arm count-arm arm-checkkern

# The same files for another machine: with its own compiler, flags and objects, run in an emulator. Linked
# statically, except with the sanitizers, which need a dynamic loader, and cannot check for leaks there.
ARM_CC ?= aarch64-linux-gnu-gcc
ARM_CFLAGS ?= $(if $(SAN),-O1 -g -fsanitize=address$(comma)undefined -fno-sanitize-recover=all,-O2 -g)
ARM_KERNEL_OPT ?= $(if $(SAN),,-O3)
ARM_LDFLAGS ?= $(if $(SAN),,-static)
ARM_QEMU ?= qemu-aarch64-static
arm_dir := $(if $(SAN),arm/san,arm)
# The host's config.h does not know what this compiler can do.
arm_i8mm = $(shell echo | $(ARM_CC) -march=armv8.2-a+i8mm -E -x c - >/dev/null 2>&1 && echo 1 || echo 0)
arm_build = checkkern=$(arm_dir)/checkkern O=$(arm_dir)/obj ARCH=arm CC='$(ARM_CC)' CFLAGS='$(ARM_CFLAGS)' \
            LDFLAGS='$(ARM_LDFLAGS)' I8MM_EXT=$(if $(filter 1,$(arm_i8mm)),+i8mm) \
            CPPFLAGS='-DQSF_HAVE_I8MM=$(arm_i8mm)' EXTRA_CFLAGS= EXTRA_LDFLAGS= LIB_CFLAGS= CMOCKA_CFLAGS= \
            KERNEL_OPT='$(ARM_KERNEL_OPT)' SAN=
arm_lacks = $(shell command -v $(ARM_QEMU) >/dev/null || echo '$(ARM_QEMU)'; \
    echo 'int main(void) { return 0; }' | $(ARM_CC) $(ARM_LDFLAGS) -x c -o /dev/null - 2>/dev/null || echo '$(ARM_CC)')
check-arm: export ARM_QEMU := $(ARM_QEMU)
check-arm: export ARM_CHECKKERN = $(CURDIR)/$(arm_dir)/checkkern
check-arm: export ARM_SAN = $(SAN)
check-arm: export ARM_LACKS = $(arm_lacks)
check-arm: export ASAN_OPTIONS = detect_leaks=0
check-arm: export QEMU_LD_PREFIX = $(dir $(shell $(ARM_CC) -print-file-name=libc.so.6 2>/dev/null))..
arm-checkkern:
	+$(if $(arm_lacks),,$Q$(MAKE) --no-print-directory $(arm_build) $(arm_dir)/checkkern)
check-arm: arm-checkkern
	$(runner) $S/tests/kernels/arm.sh

count-arm: arm-checkkern
	$QCHECKKERN=$(arm_dir)/checkkern ARM_QEMU='$(ARM_QEMU)' $S/tools/count-arm $(FORMATS)

# The whole test suite: a build of its own in arm-all/, with Debian's libraries for ARM64. The scripts run the programs
# by name: they need the emulator registered with the kernel (binfmt_misc, package qemu-user-binfmt or binfmt-support).
.PHONY: check-arm-all arm-all
arm_all_root ?= $(abspath arm-all-root)
arm_all_env := PKG_CONFIG_SYSROOT_DIR=$(arm_all_root) PKG_CONFIG_LIBDIR=$(arm_all_root)/usr/lib/aarch64-linux-gnu/pkgconfig
arm_all_make = $(arm_all_env) QEMU_LD_PREFIX=$(arm_all_root) $(MAKE) --no-print-directory -C arm-all SAN= \
    EMULATOR='$(ARM_QEMU) -L $(arm_all_root)' $(if $(TESTS),TESTS='$(TESTS)')
arm-all:
	@[ -d $(arm_all_root) ] || $S/packaging/sysroot arm64 $(arm_all_root)
	@mkdir -p arm-all
	@[ -f arm-all/config.mk ] || (cd arm-all && $(arm_all_env) $(abs_srcdir)/configure --host=aarch64-linux-gnu \
	    CC='aarch64-linux-gnu-gcc --sysroot=$(arm_all_root)' PKG_CONFIG=pkg-config CFLAGS='-O1 -g1' >config.out || { cat config.out; exit 1; })
check-arm-all: arm-all
	+$Q$(arm_all_make) check-unit
	+$Q$(arm_all_make) all
	+$Qif arm-all/qsf-run --version >/dev/null 2>&1; then $(arm_all_make) check-system check-ui; \
	    else echo "skip: THE SCRIPTS DID NOT RUN FOR ARM64: this kernel does not start its programs (binfmt_misc)"; fi
