# SPDX-License-Identifier: GPL-3.0-or-later
# The readers of files with random input; part of the Makefile.

.PHONY: fuzz fuzz-build fuzz-binaries fuzz-programs

# libFuzzer needs clang and a library built for it, except the kernels, which one target uses to make its
# first file. FUZZ_RUNS=N: this number of executions instead of a time.
# FUZZ_CFLAGS=-fno-sanitize-coverage=trace-cmp (when fuzz/ is created) does not learn from comparisons and is
# up to four times as fast: for many executions over inputs found before.
FUZZ_CC ?= clang
FUZZ_SECONDS ?= 30
FUZZ_RUNS ?=
FUZZ_CFLAGS ?=
fuzz_make = +$Q$(MAKE) --no-print-directory -C fuzz KERNEL_OPT=-O0 KERNEL_EXTRA=-fno-sanitize=address,undefined,fuzzer-no-link
fuzz-build:
	@mkdir -p fuzz
	@test -f fuzz/config.mk || (cd fuzz && $(abs_srcdir)/configure --enable-sanitizers CC=$(FUZZ_CC) CFLAGS='-O1 -g -fsanitize=fuzzer-no-link $(FUZZ_CFLAGS)')
	$(fuzz_make) fuzz-binaries
fuzz: fuzz-build
	$(fuzz_make) fuzz-programs
fuzz-binaries: $(call wanted,$(fuzz_bin))
fuzz-programs: export QSF_FUZZ_OPTIONS = $(if $(FUZZ_RUNS),-runs=$(FUZZ_RUNS),-max_total_time=$(FUZZ_SECONDS)) -rss_limit_mb=2048 -error_exitcode=1 \
    -print_final_stats=1
fuzz-programs: export QSF_TEST_TIMEOUT = 0
fuzz-programs: fuzz-binaries
	$(runner) $(call wanted,$(fuzz_bin))
