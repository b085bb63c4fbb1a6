# SPDX-License-Identifier: GPL-3.0-or-later
# The tests; part of the Makefile. TESTS="name..." picks some by the last part of their name.

.PHONY: tests check check-all check-long check-chroots check-hour check-unit check-kernels check-system check-ui check-san check-tsan

# Long and rarely affected by a change to the engine: only in check-all, or selected by name. QSF_TEST_QUICK
# tells the others to skip their long parts; in check-all it is empty.
slow_tests := system/amalgamation system/cgroup system/configure system/drafts_all system/guide system/guide_train system/package system/shell system/tarball system/web \
    ui/live ui/stop
# Those that need minutes of the network run only if they are named.
named_tests := system/chroots system/cross
quick := 1
check-all: quick :=
shortened_tests = $(basename $(notdir $(shell grep -lE 'QSF_TEST_QUICK|qsf_test_quick' \
    $(addprefix $S/,$(unit_src) $(system_tests) $(ui_tests)))))
short = $(if $(TESTS),$1,$(filter-out $(slow_tests:%=tests/%.sh),$1))

wanted = $(if $(TESTS),$(foreach t,$1,$(if $(filter $(TESTS),$(basename $(notdir $t))),$t)),$1)
run_unit := $(call wanted,$(unit_bin))
run_kern := $(call wanted,$(checkkern))
run_system := $(call wanted,$(if $(TESTS),$(system_tests),$(filter-out $(named_tests:%=tests/%.sh),$(system_tests))))
run_ui := $(call wanted,$(ui_tests))
runner = @QSF_SRCDIR='$(abs_srcdir)' QSF_BUILDDIR='$(CURDIR)' QSF_TEST_QUICK='$(quick)' QSF_SAN='$(filter yes,$(SANITIZERS))' \
         QSF_EMULATOR='$(EMULATOR)' \
         CC='$(CC)' MAKE='$(MAKE)' TESTS='$(TESTS)' sh $S/tests/run.sh

ifeq ($(HAVE_CMOCKA),no)
tests check check-all check-unit:
	@echo "make check needs cmocka: install the package" \
	    "'$(CMOCKA_PACKAGE)' or run $S/configure --install-deps" >&2
	@exit 1
else ifneq ($(SAN),)
# The same checks in a separate build with the sanitizers; optimizing more than -O1 takes gcc twice as long
# with them.
check check-all check-unit check-kernels check-system check-ui tests: check-san
check-san:
	@mkdir -p san
	@test -f san/config.mk || (cd san && export CFLAGS="$${CFLAGS:--O1 -g}" && eval '$(abs_srcdir)/configure $(subst ','\'',$(CONFIGURE_ARGS)) --enable-sanitizers')
	+$Q$(MAKE) --no-print-directory -C san SAN= $(or $(filter check% tests,$(MAKECMDGOALS)),check)
else
tests: all $(unit_bin) $(checkkern) $(tool_bin)
check: all $(run_unit) $(run_kern) $(tool_bin)
	$(runner) $(run_unit) $(run_kern) $(addprefix $S/,$(call short,$(run_system) $(run_ui)))
check-all: all $(run_unit) $(run_kern) $(tool_bin)
	$(runner) $(run_unit) $(run_kern) $(addprefix $S/,$(run_system) $(run_ui))
check-unit: $(run_unit)
	$(runner) $(run_unit)
endif

# The thread sanitizer, in a third build. What races does not depend on the level of the kernels: one is
# built, instrumented like everything else; QK_ONE_FILE leaves the others out of the table (kernels/built.h).
# Only tests whose subject are threads.
tsan_flags_x86 := -msse4.2
tsan_levels_x86 := sse42:x86:ALL
tsan_levels_arm := neon:arm:ALL
tsan_tests := t_two_engines t_pool t_api
tsan_make = $(MAKE) --no-print-directory -C tsan TESTS='$(or $(TESTS),$(tsan_tests))' SANITIZERS=yes KERNEL_DEBUG=-g1 KERNEL_OPT=-O1 FRAME_FLAGS= \
    levels='$(tsan_levels_$(ARCH))' CPPFLAGS=-DQK_ONE_FILE quick=1
check-tsan: export TSAN_OPTIONS := suppressions=$(abs_srcdir)/tests/harness/tsan.supp $(TSAN_OPTIONS)
check-tsan:
	@mkdir -p tsan
	@test -f tsan/config.mk || (cd tsan && eval '$(abs_srcdir)/configure $(subst ','\'',$(CONFIGURE_ARGS)) CFLAGS="-O1 -g1 -fsanitize=thread $(tsan_flags_$(ARCH))"')
	+$Q$(tsan_make) check-unit

# With sanitizers, of the tests that check omits, only those that run the programs.
check-long:
	+$Q$(MAKE) --no-print-directory check-all TESTS='$(notdir $(if $(SAN),$(filter ui/%,$(slow_tests)),$(slow_tests))) $(shortened_tests)'

# What leaves this machine, on other systems.
check-chroots:
	+$Q QSF_TEST_TIMEOUT=3600 $(MAKE) --no-print-directory check-system TESTS='chroots cross'

# Before a release: what takes too long for the others.
check-hour: check-chroots
	+$Q QSF_SERVE_SECONDS=600 QSF_DRAFTS_PROMPTS=200 QSF_TEST_TIMEOUT=1200 $(MAKE) --no-print-directory check-system TESTS='serve_load drafts_all'

ifeq ($(SAN),)
check-kernels: $(checkkern)
	$(runner) $(checkkern)
check-system: all $(tool_bin)
	$(runner) $(addprefix $S/,$(call short,$(run_system)))
check-ui: all $(tool_bin)
	$(runner) $(addprefix $S/,$(call short,$(run_ui)))
endif
