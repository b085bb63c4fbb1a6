# SPDX-License-Identifier: GPL-3.0-or-later
# GNU make. Sources are found by directory: a new file needs no change here. Everything is built in
# the current directory: programs and libqsf.a beside config.mk, objects and tests below obj/. The kernels' sources are
# in kernels/kernels.mk.
#
#   make [V=1]               programs, libqsf.a, compile_commands.json
#   make run [MODEL=FILE]    open the chat
#   make check [SAN=1] [TESTS="t_err deps"]
#   make check-all           the same with the long tests, and the long parts of the others
#   make check-long          only what check leaves out
#   make check-unit check-kernels check-system check-ui bench fuzz
#   make check-tsan          unit tests with threads, with the thread sanitizer
#   make check-arm           kernels for 64-bit ARM by a cross compiler, checked in an emulator
#   make count-arm           instructions of these kernels per multiply-add; FORMATS="q4_0 ..."
#   make install install-strip uninstall [DESTDIR=DIR]
#   make amalgamation        qsf-run as one file, qsf.c, and qsf.h for programs that use it as a library
#   make dist distcheck compdb clean distclean

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

srcdir ?= .
unconfigured := clean distclean help
-include config.mk
ifndef CONFIGURE_ARGS
ifeq ($(wildcard config.mk),)
ifneq ($(filter-out $(unconfigured),$(or $(MAKECMDGOALS),all)),)
$(error not configured: run $(srcdir)/configure first)
endif
endif
endif

S := $(srcdir)
O := obj
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $1 $2)

# ---- sources (paths relative to the source root)

find = $(patsubst $S/%,%,$(sort $(wildcard $(addprefix $S/,$1))))
obj = $(patsubst %.c,$O/%.o,$1)

# src/convert: what only qsf-convert uses; its own files are src/convert/*.c.
lib_dirs := base file file/gguf file/qsf file/hf file/derive file/vocab jinja token chat model model/family plan stream kv \
    forward forward/ops sample engine engine/snapshot engine/quality measure cli
convert_dirs := convert/quant convert/pack convert/calibrate
quant_dirs_x86 := src/convert/quant/x86
include $S/kernels/kernels.mk
kernel_src := $(call find,kernels/*.c kernels/ref/*.c kernels/x16/*.c) $(generated_src)
lib_src := $(call find,$(patsubst %,src/%/*.c,$(lib_dirs))) $(kernel_src)
convert_lib_src := $(call find,$(patsubst %,src/%/*.c,$(convert_dirs)) $(addsuffix /*.c,$(quant_dirs_$(ARCH))))
run_src := $(call find,src/run/*.c)
convert_src := $(call find,src/convert/*.c)
ui_src := $(call find,ui/*.c)
harness_src := $(call find,tests/harness/*.c)
unit_src := $(call find,tests/unit/*/t_*.c)
uiunit_src := $(call find,tests/unit/ui/ui_*.c)
checkkern_src := $(call find,tests/kernels/*.c tests/kernels/$(ARCH)/*.c)
tool_src := $(call find,tests/tools/*.c)
fuzz_src := $(call find,tests/fuzz/fuzz_*.c)
all_src := $(lib_src) $(convert_lib_src) $(run_src) $(convert_src) $(ui_src) $(harness_src) $(unit_src) $(uiunit_src) $(tool_src) $(checkkern_src)

system_tests := $(filter-out %/lib.sh %/model.sh %/hf.sh,$(call find,tests/system/*.sh))
ui_tests := $(filter-out %/lib.sh,$(call find,tests/ui/*.sh))

# A program exists when it has its own main.c.
programs := $(if $(filter src/run/main.c,$(run_src)),qsf-run) \
            $(if $(filter ui/main.c,$(ui_src)),qsf-chat) \
            $(if $(filter src/convert/main.c,$(convert_src)),qsf-convert)
unit_bin := $(patsubst %.c,$O/%,$(unit_src))
uiunit_bin := $(patsubst %.c,$O/%,$(uiunit_src))
checkkern := $(if $(checkkern_src),checkkern)
tool_bin := $(patsubst %.c,$O/%,$(tool_src))
fuzz_bin := $(patsubst %.c,$O/%,$(fuzz_src))

# ---- flags

arch_define_x86 := -DQK_ARCH_X86=1
arch_define_arm := -DQK_ARCH_ARM=1

# $(call src_flags,path without .c): the flags of this file in addition to the common ones. Line numbers are
# enough to locate an error in a kernel; tracking its variables takes the compiler as long as the kernel
# itself.
lean_debug = $(if $(filter -g,$(CFLAGS)),-g1)
# KERNEL_EXTRA: for the kernels only; CI disables AddressSanitizer for them, because in their checks every
# buffer is followed by a guard page. Without optimization the frames of the attention kernels are larger than the stack of
# a thread of the pool.
kernel_opt = $(if $(filter kernels/generated/kv_%,$1),$(KERNEL_OPT:-O0=-O1),$(KERNEL_OPT))
src_flags = $(if $(filter kernels/%,$1),$(kernel_opt) $(KERNEL_EXTRA) $(FRAME_FLAGS) $(lean_debug) $(arch_define_$(ARCH)) $($(call level_of,$1)_flags)) \
            $(if $(filter tests/kernels/x86/% tests/kernels/arm/%,$1),$(KERNEL_OPT) $(lean_debug) $($(call level_of,$1)_flags)) \
            $(if $(filter src/convert/quant/%,$1),$(KERNEL_OPT) $(lean_debug) $(arch_define_$(ARCH)) $($(call level_of,$1)_flags)) \
            $(if $(filter ui/% tests/unit/ui/%,$1),$(UI_CFLAGS)) \
            $(if $(filter tests/%,$1),$(CMOCKA_CFLAGS) $(arch_define_$(ARCH)))
common_flags = $(STD_FLAGS) $(WARN_FLAGS) -include config.h -I$S/include -I$S $(LIB_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA_CFLAGS)
compile = $(strip $(CC) $(common_flags) $(call src_flags,$1))
link = $(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) $(EXTRA_LDFLAGS)
# Tests are never static: cmocka has no static form on some systems. The chat is, where possible.
link_dynamic = $(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(filter-out -static,$(LDFLAGS)) $(EXTRA_LDFLAGS)
link_ui = $(if $(filter no,$(UI_STATIC)),$(link_dynamic),$(link))

# ---- build

.PHONY: all tests check check-all check-long check-unit check-kernels check-system check-ui check-san check-tsan check-arm count-arm arm-checkkern bench run fuzz
.PHONY: fuzz-build fuzz-binaries fuzz-programs
.PHONY: amalgamation install install-strip uninstall dist distcheck compdb clean distclean help

all: $(programs) libqsf.a compile_commands.json

help:
	@sed -n 's/^#   make/make/p' $S/Makefile

define compile_it
$(call say,CC,$*.c)
@mkdir -p $(@D)
$Q$(call compile,$*) -MMD -MP -c -o $@ $<
endef
$O/%.o: $S/%.c config.mk config.h
	$(compile_it)
$(call obj,$(generated_src)): $O/%.o: $O/%.c config.mk config.h
	$(compile_it)

# Linked by the programs and the tests: every function of src/ outside src/run and src/convert/*.c.
engine := $O/libengine.a
$(engine): $(call obj,$(lib_src) $(convert_lib_src))
	$(call say,AR,$@)
	@rm -f $@
	$Q$(AR) qc $@ $^ && $(RANLIB) $@

# Linked by other programs: one object whose only global symbols are the functions of the two public headers.
public_headers := include/qsf.h include/qsf_engine.h
$O/public.txt: $(addprefix $S/,$(public_headers))
	@mkdir -p $(@D)
	$Qsed -n 's/.*\(qsf_[a-z0-9_]*\)(.*/\1/p' $^ | sort -u >$@

libqsf.a: $(call obj,$(lib_src)) $O/public.txt
	$(call say,AR,$@)
	@rm -f $@
	$Q$(CC) -nostdlib -r -o $O/libqsf.o $(filter %.o,$^)
	$Q$(OBJCOPY) --keep-global-symbols=$O/public.txt $O/libqsf.o
	$Q$(AR) qc $@ $O/libqsf.o && $(RANLIB) $@

qsf-run: $(call obj,$(run_src)) $(engine)
	$(call say,LINK,$@)
	$Q$(link) -o $@ $^ $(LIB_LIBS)

qsf-convert: $(call obj,$(convert_src)) $(engine)
	$(call say,LINK,$@)
	$Q$(link) -o $@ $^ $(LIB_LIBS)

qsf-chat: $(call obj,$(ui_src)) $(engine)
	$(call say,LINK,$@)
	$Q$(link_ui) -o $@ $^ $(UI_LIBS) $(LIB_LIBS)

# The kernel checks link only the kernels, which must not need anything else.
$(or $(checkkern),checkkern): $(call obj,$(checkkern_src)) $(call obj,$(kernel_src))
	$(call say,LINK,$@)
	$Q$(link) -o $@ $^ -lm

$(unit_bin): $O/%: $O/%.o $(call obj,$(harness_src)) $(engine)
	$(call say,LINK,$(@F))
	$Q$(link_dynamic) -o $@ $^ $(CMOCKA_LIBS) $(LIB_LIBS)

# Programs called by test scripts, such as the generator of tiny models.
$(tool_bin): $O/%: $O/%.o $(call obj,$(harness_src)) $(engine)
	$(call say,LINK,$(@F))
	$Q$(link_dynamic) -o $@ $^ $(CMOCKA_LIBS) $(LIB_LIBS)

$(uiunit_bin): $O/%: $O/%.o $(call obj,$(harness_src)) $(call obj,$(filter-out ui/main.c,$(ui_src))) $(engine)
	$(call say,LINK,$(@F))
	$Q$(link_dynamic) -o $@ $^ $(CMOCKA_LIBS) $(UI_LIBS) $(LIB_LIBS)

$(fuzz_bin): $O/%: $O/%.o $(call obj,$(harness_src)) $(engine)
	$(call say,LINK,$(@F))
	$Q$(link) -fsanitize=fuzzer -o $@ $^ $(CMOCKA_LIBS) $(LIB_LIBS)

# config.mk keeps its time if a new run of configure has the same results.
config.mk config.h: config.stamp ; @:
config.stamp: $S/configure $S/VERSION
	@echo "configure or VERSION changed: configuring again"
	@eval '$S/configure $(subst ','\'',$(CONFIGURE_ARGS))' >/dev/null

-include $(patsubst %.o,%.d,$(call obj,$(all_src) $(fuzz_src)))

# ---- compile_commands.json, one shell line per source so that no line grows too long

compdb: compile_commands.json
define newline


endef
compdb_path = $(if $(filter $1,$(generated_src)),$O,$S)/$1
compdb_entry = @printf '%s\n' '{"directory": "$(CURDIR)", "file": "$(compdb_path)", "command": "$(subst ",\",$(call compile,$(basename $1))) -c $(compdb_path)"}$2' >>$@.tmp$(newline)
compdb_dirs = $(sort $(dir $(filter-out $(generated_src),$(all_src))))
compile_commands.json: config.mk $S/Makefile $S/kernels/kernels.mk $(formats_h) $(addprefix $S/,$(compdb_dirs))
	$(call say,GEN,$@)
	@echo '[' >$@.tmp
	$(foreach s,$(all_src),$(call compdb_entry,$s,$(if $(filter $s,$(lastword $(all_src))),,$(comma))))
	@echo ']' >>$@.tmp
	@mv $@.tmp $@
comma := ,

# ---- tests: TESTS="name..." picks some by the last part of their name

# Long and rarely affected by a change to the engine: only in check-all, or selected by name. QSF_TEST_QUICK
# tells the others to skip their long parts; in check-all it is empty.
slow_tests := system/amalgamation system/cgroup system/configure system/guide system/guide_train system/shell \
    ui/live ui/stop
quick := 1
check-all: quick :=
shortened_tests = $(basename $(notdir $(shell grep -lE 'QSF_TEST_QUICK|qsf_test_quick' \
    $(addprefix $S/,$(unit_src) $(uiunit_src) $(system_tests) $(ui_tests)))))
short = $(if $(TESTS),$1,$(filter-out $(slow_tests:%=tests/%.sh),$1))

wanted = $(if $(TESTS),$(foreach t,$1,$(if $(filter $(TESTS),$(basename $(notdir $t))),$t)),$1)
run_unit := $(call wanted,$(unit_bin) $(uiunit_bin))
run_kern := $(call wanted,$(checkkern))
run_system := $(call wanted,$(system_tests))
run_ui := $(call wanted,$(ui_tests))
runner = @QSF_SRCDIR='$(abs_srcdir)' QSF_BUILDDIR='$(CURDIR)' QSF_TEST_QUICK='$(quick)' QSF_SAN='$(filter yes,$(SANITIZERS))' \
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
tests: all $(unit_bin) $(uiunit_bin) $(checkkern) $(tool_bin)
check: all $(run_unit) $(run_kern) $(tool_bin)
	$(runner) $(run_unit) $(run_kern) $(addprefix $S/,$(call short,$(run_system) $(run_ui)))
check-all: all $(run_unit) $(run_kern) $(tool_bin)
	$(runner) $(run_unit) $(run_kern) $(addprefix $S/,$(run_system) $(run_ui))
check-unit: $(run_unit)
	$(runner) $(run_unit)
endif

# The thread sanitizer, in a third build. What races does not depend on the level of the kernels: one is built, instrumented
# like everything else; QK_ONE_FILE leaves the others out of the table (kernels/built.h). Only tests whose subject are threads.
tsan_flags_x86 := -msse4.2
tsan_levels_x86 := sse42:x86:ALL
tsan_levels_arm := neon:arm:ALL
tsan_tests := t_two_engines t_pool t_api
tsan_make = $(MAKE) --no-print-directory -C tsan TESTS='$(or $(TESTS),$(tsan_tests))' SANITIZERS=yes KERNEL_OPT=-O1 FRAME_FLAGS= \
    levels='$(tsan_levels_$(ARCH))' CPPFLAGS=-DQK_ONE_FILE quick=1
check-tsan: export TSAN_OPTIONS := suppressions=$(abs_srcdir)/tests/harness/tsan.supp $(TSAN_OPTIONS)
check-tsan:
	@mkdir -p tsan
	@test -f tsan/config.mk || (cd tsan && eval '$(abs_srcdir)/configure $(subst ','\'',$(CONFIGURE_ARGS)) CFLAGS="-O1 -g1 -fsanitize=thread $(tsan_flags_$(ARCH))"')
	+$Q$(tsan_make) check-unit

# With sanitizers, of the tests that check omits, only those that run the programs.
check-long:
	+$Q$(MAKE) --no-print-directory check-all TESTS='$(notdir $(if $(SAN),$(filter ui/%,$(slow_tests)),$(slow_tests))) $(shortened_tests)'

ifeq ($(SAN),)
check-kernels: $(checkkern)
	$(runner) $(checkkern)
check-system: all $(tool_bin)
	$(runner) $(addprefix $S/,$(call short,$(run_system)))
check-ui: all $(tool_bin)
	$(runner) $(addprefix $S/,$(call short,$(run_ui)))
endif

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

# The table of kernels, and models with everything in RAM, next to other programs (llama-bench) if given.
bench_models = $(or $(MODELS),$(MODEL))
bench: all $(checkkern)
	$(if $(and $(PEER),$(bench_models)),,$(if $(checkkern),./checkkern --bench))
	$(if $(bench_models),$S/tools/bench-peer -b . $(if $(PAIRS),-r $(PAIRS)) $(foreach p,$(PEER),-P '$p') $(bench_models),@echo \
	    'bench: MODELS="FILE..." measures models too, PEER="LLAMA-BENCH..." other programs beside them')

run: qsf-chat
	@./qsf-chat $(MODEL)

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

# ---- install

INSTALL ?= install
man_pages := $(call find,man/*.[15])
templates := $(call find,templates/*)
models := $(call find,models/*.qsf)
headers := $(call find,include/qsf.h include/qsf_engine.h)
D = $(DESTDIR)
install_to = $(if $(strip $2),$(INSTALL) -d $D$3 && $(INSTALL) -m $1 $2 $D$3)

install: all
	$(call install_to,755,$(programs),$(bindir))
	$(call install_to,644,libqsf.a,$(libdir))
	$(call install_to,644,qsf.pc,$(libdir)/pkgconfig)
	@sed 's|^prefix=.*|prefix=$(prefix)|; s|^libdir=.*|libdir=$(libdir)|; s|^includedir=.*|includedir=$(includedir)|' \
	    qsf.pc >$D$(libdir)/pkgconfig/qsf.pc
	$(call install_to,644,$(addprefix $S/,$(headers)),$(includedir))
	$(call install_to,644,$(addprefix $S/,$(filter %.1,$(man_pages))),$(mandir)/man1)
	$(call install_to,644,$(addprefix $S/,$(filter %.5,$(man_pages))),$(mandir)/man5)
	$(call install_to,644,$(addprefix $S/,$(templates)),$(datadir)/qsf/templates)
	$(call install_to,644,$(addprefix $S/,$(models)),$(datadir)/qsf/models)

install-strip: install
	$(if $(programs),$(STRIP) $(addprefix $D$(bindir)/,$(programs)))

uninstall:
	rm -f $(addprefix $D$(bindir)/,$(programs)) $D$(libdir)/libqsf.a $D$(libdir)/pkgconfig/qsf.pc \
	    $(addprefix $D$(includedir)/,$(notdir $(headers))) \
	    $(foreach p,$(man_pages),$D$(mandir)/man$(patsubst .%,%,$(suffix $p))/$(notdir $p)) \
	    $(addprefix $D$(datadir)/qsf/,$(templates) $(models))
	-@rmdir $D$(datadir)/qsf/templates $D$(datadir)/qsf/models $D$(datadir)/qsf 2>/dev/null || true

# ---- one file: qsf-run with the kernels of every machine, without the parts that only qsf-convert needs

PYTHON ?= python3
amalgam_src := $(call find,$(patsubst %,src/%/*.c,$(filter-out quant requantize calibrate,$(lib_dirs)) run) kernels/*.c kernels/*/*.c)
amalgamation: $(addprefix $O/,$(generated_all))
	$(call say,GEN,qsf.c)
	$Q$(PYTHON) $S/tools/amalgamate -s $S -g $O -o . -v $(VERSION) -d $(datadir)/qsf \
	    $(sort $(amalgam_src) $(generated_all))

# ---- dist

dist_name = qsf-$(VERSION)
# In a checkout git lists the files; in an unpacked archive MANIFEST does.
dist:
	@rm -rf $(dist_name) && mkdir $(dist_name)
	@if test -e $S/.git; then git -C $S ls-files; else cat $S/MANIFEST; fi \
	    | grep -v '^MANIFEST$$' | while read -r f; do test ! -f $S/$$f || echo $$f; done >$(dist_name)/MANIFEST
	@(cd $S && tar cf - -T $(CURDIR)/$(dist_name)/MANIFEST) | (cd $(dist_name) && tar xf -)
	@tar cf - $(dist_name) | gzip -9 >$(dist_name).tar.gz
	@rm -rf $(dist_name)
	@echo $(dist_name).tar.gz

distcheck: dist
	@rm -rf distcheck && mkdir -p distcheck/build
	cd distcheck && gzip -dc ../$(dist_name).tar.gz | tar xf -
	chmod -R a-w distcheck/$(dist_name)
	cd distcheck/build && ../$(dist_name)/configure --prefix=/usr CC='$(CC)'
	+$(MAKE) -C distcheck/build
	+QSF_TEST_DATA=$${QSF_TEST_DATA:-$(abspath $S/../shared)} $(MAKE) -C distcheck/build check
	+$(MAKE) -C distcheck/build install DESTDIR=$(CURDIR)/distcheck/root
	+$(MAKE) -C distcheck/build uninstall DESTDIR=$(CURDIR)/distcheck/root
	@test -z "$$(find distcheck/root -type f)" || { echo "left behind:"; find distcheck/root -type f; exit 1; }
	+$(MAKE) -C distcheck/build dist
	@chmod -R u+w distcheck && rm -rf distcheck
	@echo "$(dist_name).tar.gz is good"

clean:
	rm -rf $O san tsan fuzz arm qsf-chat qsf-run qsf-convert checkkern libqsf.a compile_commands.json qsf.c qsf.h

distclean: clean
	@chmod -R u+w distcheck 2>/dev/null || true
	rm -rf distcheck corpus config.mk config.h config.log config.stamp qsf.pc qsf-*.tar.gz
	@test '$S' = . || { for d in templates models; do test ! -L $$d || rm -f $$d; done; rm -f Makefile; }
