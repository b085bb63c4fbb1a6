# SPDX-License-Identifier: GPL-3.0-or-later
# GNU make. Sources are found by directory: a new file needs no change here. Everything is built in
# the current directory: programs and libqsf.a beside config.mk, objects and tests below obj/. The sources and
# flags of the kernels are in kernels/kernels.mk, the rest of the targets in mk/.
#
#   make [V=1]               programs, libqsf.a, compile_commands.json
#   make run [MODEL=FILE]    open the chat
#   make check [SAN=1] [TESTS="t_err deps"]
#   make check-all           the same with the long tests, and the long parts of the others
#   make check-long          only what check leaves out
#   make check-chroots       archive and package in bare systems of all Debian releases (root, network)
#   make check-hour          the same, 64 clients of qsf-serve for ten minutes, 200 prompts with all drafts
#   make check-unit check-kernels check-system check-ui bench fuzz
#   make check-tsan          unit tests with threads, with the thread sanitizer
#   make check-arm           kernels for 64-bit ARM by a cross compiler, checked in an emulator
#   make check-arm-all       all tests for 64-bit ARM, in an emulator (root, network, an hour)
#   make wasm                the engine for web browsers and a page to chat with it (wasm/web)
#   make check-wasm          its kernels, checked in node
#   make count-arm           instructions of these kernels per multiply-add; FORMATS="q4_0 ..."
#   make install install-strip uninstall [DESTDIR=DIR]
#   make completions         completions for bash, zsh and fish, printed by the programs (part of all)
#   make amalgamation        qsf-run as one file, qsf.c, and qsf.h for programs that use it as a library
#   make static              programs that need no shared library (static/)
#   make tarball             these with everything that belongs to them, and an install.sh (package/)
#   make package             packages for Debian, and of the static programs for RPM (package/)
#   make recipes             package/homebrew and package/aur, with the checksum of the archive of make dist
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
comma := ,

# ---- sources (paths relative to the source root)

find = $(patsubst $S/%,%,$(sort $(wildcard $(addprefix $S/,$1))))
obj = $(patsubst %.c,$O/%.o,$1)

# src/convert: what only qsf-convert uses; its own files are src/convert/*.c.
lib_dirs := base file file/gguf file/qsf file/hf file/derive file/vocab file/hf/arch jinja token chat model model/family plan stream kv \
    forward forward/ops grammar speculate sample sample/stages engine engine/snapshot engine/quality engine/habits measure catalog cli svg remote
convert_dirs := convert/quant convert/pack convert/calibrate
quant_dirs_x86 := src/convert/quant/x86
# What operating systems do differently (src/base/platform.h): of each file that of the system, or else of POSIX.
platform_dirs := $(addprefix src/base/,$(PLATFORM) posix)
platform_src := $(foreach f,$(sort $(notdir $(call find,$(addsuffix /*.c,$(platform_dirs))))), \
    $(firstword $(foreach d,$(platform_dirs),$(call find,$d/$f))))
include $S/kernels/kernels.mk
kernel_src := $(call find,kernels/*.c kernels/ref/*.c kernels/x16/*.c) $(generated_src)
lib_src := $(call find,$(patsubst %,src/%/*.c,$(lib_dirs))) $(platform_src) $(kernel_src)
convert_lib_src := $(call find,$(patsubst %,src/%/*.c,$(convert_dirs)) $(addsuffix /*.c,$(quant_dirs_$(ARCH))))
run_src := $(call find,src/run/*.c)
convert_src := $(call find,src/convert/*.c)
ui_src := $(call find,ui/*.c ui/*/*.c)
# Only where libcurl and nettle are.
get_src := $(if $(filter 1,$(HAVE_GET)),$(call find,get/*.c))
# Only where libmicrohttpd is.
serve_src := $(if $(filter 1,$(HAVE_SERVE)),$(call find,serve/*.c))
# Of these, what knows neither that library nor a running engine.
serve_parts := $(patsubst %,serve/%.c,calls control fields guard job lists memory messages prompt reader reply request responses responses_items responses_reply route slots tools)
harness_src := $(call find,tests/harness/*.c)
unit_main := tests/unit/units.c
unit_src := $(call find,tests/unit/*/t_*.c tests/unit/ui/ui_*.c)
checkkern_src := $(call find,tests/kernels/*.c tests/kernels/$(ARCH)/*.c)
# Programs called by test scripts, such as the generator of tiny models.
tool_src := $(call find,tests/tools/*.c)
static_src := $(call find,packaging/static/*.c)
fuzz_src := $(call find,tests/fuzz/fuzz_*.c)
all_src := $(lib_src) $(convert_lib_src) $(run_src) $(convert_src) $(ui_src) $(get_src) $(serve_src) $(harness_src) $(unit_main) $(unit_src) $(tool_src) $(checkkern_src)

system_tests := $(filter-out %/lib.sh %/model.sh %/hf.sh,$(call find,tests/system/*.sh))
ui_tests := $(filter-out %/lib.sh,$(call find,tests/ui/*.sh))

# A program exists when it has its own main.c.
programs := $(if $(filter src/run/main.c,$(run_src)),qsf-run) \
            $(if $(filter ui/main.c,$(ui_src)),qsf-chat) \
            $(if $(filter src/convert/main.c,$(convert_src)),qsf-convert) \
            $(if $(get_src),qsf-get) \
            $(if $(serve_src),qsf-serve)
unit_bin := $(patsubst %.c,$O/%,$(unit_src))
checkkern := $(if $(checkkern_src),checkkern)
tool_bin := $(patsubst %.c,$O/%,$(tool_src))
fuzz_bin := $(patsubst %.c,$O/%,$(fuzz_src))

# ---- flags

arch_define_x86 := -DQK_ARCH_X86=1
arch_define_arm := -DQK_ARCH_ARM=1
arch_define_wasm := -DQK_ARCH_WASM=1

# $(call src_flags,path without .c): the flags of this file in addition to the common ones. Debug information of kernels
# is most of an archive: they have line numbers only where configure was told to debug (KERNEL_DEBUG), and never the
# variables, which take the compiler as long as the kernel itself.
lean_debug = $(if $(filter -g%,$(CFLAGS)),$(KERNEL_DEBUG))
# KERNEL_UNRUN: levels that this machine cannot run, so that sanitizers would only make them slower to compile.
unrun = $(if $(filter $(KERNEL_UNRUN),$(call level_of,$1))$(if $(filter -O0,$(KERNEL_OPT)),$(filter $(fast_kernels),$1.c)),-fno-sanitize=all)
# KERNEL_EXTRA: for the kernels only; CI disables AddressSanitizer for them, because in their checks every
# buffer is followed by a guard page. CHECK_OPT: of the checks themselves, which compute everything once more.
# gcc 12 for ARM ends with an internal error for one of them at -O3.
CHECK_OPT ?= $(if $(filter x86,$(ARCH)),$(if $(filter yes,$(SANITIZERS)),,-O3))
kernel_opt = $(if $(filter $(KERNEL_OPT_O1),$1),$(KERNEL_OPT:-O0=-O1),$(KERNEL_OPT))
# With KERNEL_OPT=-O0 tests would spend most of their time in the formats of their large model (tests/tools/mkbig.c),
# at the level of the machine, KERNEL_LEVEL: these have -O1. Signed overflow is left to the other levels, which come
# from the same templates: clang would need a hundred times as long.
busy_kernels := $(foreach f,q8_0 q4_k q6_k q4_0,$(if $(KERNEL_LEVEL),kernels/generated/$f_$(KERNEL_LEVEL)))
# Folders that compute little: their files use COLD_OPT, which configure sets unless CFLAGS are given. Each
# file directly in src/convert, but not its folders, which quantize.
cold_dirs := ui/% serve/% src/run/% src/svg/% src/model/% src/file/hf/% src/file/gguf/%
cold_src := $(basename $(filter $(cold_dirs),$(all_src)) $(convert_src))
src_flags = $(if $(filter kernels/%,$1),$(kernel_opt) $(KERNEL_EXTRA) $(unrun) $(FRAME_FLAGS) $(lean_debug) $(KERNEL_UNWIND) $(arch_define_$(ARCH)) $($(call level_of,$1)_flags)) \
            $(if $(filter $(busy_kernels),$1),-O1 -fno-sanitize=signed-integer-overflow) \
            $(if $(filter tests/kernels/x86/% tests/kernels/arm/% tests/kernels/wasm/%,$1),$(KERNEL_OPT) $(lean_debug) $($(call level_of,$1)_flags)) \
            $(if $(filter tests/kernels/%,$1),$(CHECK_OPT)) \
            $(if $(filter src/convert/quant/%,$1),$(KERNEL_OPT:-O0=-O1) $(lean_debug) $(arch_define_$(ARCH)) $($(call level_of,$1)_flags)) \
            $(if $(filter $(cold_src),$1),$(COLD_OPT)) \
            $(if $(filter ui/% tests/unit/ui/%,$1),$(UI_CFLAGS)) \
            $(if $(filter get/% tests/unit/get/%,$1),$(GET_CFLAGS)) \
            $(if $(filter serve/%,$1),$(SERVE_CFLAGS)) \
            $(if $(filter tests/%,$1),$(CMOCKA_CFLAGS) $(arch_define_$(ARCH))) \
            $(if $(filter $(basename $(unit_src)),$1),$(if $(filter $(computing_tests),$1),,$(TEST_OPT)) $(unit_flags) -DQSF_UNIT=$(notdir $1)) \
            $(if $(filter tests/tools/%,$1),$(unit_flags) -DQSF_TOOL=$(notdir $1))
unit_flags := -include tests/unit/units.h
# Unit tests without optimization take a third of the time to compile, and no longer to run: what they test is optimized.
# Except these, which compute themselves what is compared.
TEST_OPT ?= -O0 -U_FORTIFY_SOURCE
computing_tests := tests/unit/kv/t_kvcache tests/unit/token/t_tokenizer_oracle
# What is included before the first line; a build for another machine has its own (mk/wasm.mk).
config_h ?= config.h
# $2: what is included instead.
common_flags = $(STD_FLAGS) $(WARN_FLAGS) $(or $2,-include $(config_h)) -I$S/include -I$S $(LIB_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA_CFLAGS)
compile = $(strip $(CC) $(common_flags) $(call src_flags,$1))
link = $(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) $(EXTRA_LDFLAGS)
# Tests are never static: cmocka has no static form on some systems. The chat is, where possible.
link_dynamic = $(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(filter-out -static,$(LDFLAGS)) $(EXTRA_LDFLAGS)
link_ui = $(if $(filter no,$(UI_STATIC)),$(link_dynamic),$(link))
link_get = $(if $(filter no,$(GET_STATIC)),$(link_dynamic),$(link))
link_serve = $(if $(filter no,$(SERVE_STATIC)),$(link_dynamic),$(link))

# ---- build

.PHONY: all run clean distclean help

all: $(programs) libqsf.a compile_commands.json completions

help:
	@sed -n 's/^#   make/make/p' $S/Makefile

define compile_it
$(call say,CC,$*.c)
@mkdir -p $(@D)
$Q$(call compile,$*,$(if $(filter $(busy_kernels),$*),,$(call level_include,$*))) -MMD -MP -c -o $@ $<
endef
$O/%.o: $S/%.c config.flags $(config_h)
	$(compile_it)
$(call obj,$(generated_src)): $O/%.o: $O/%.c config.flags $(config_h)
	$(compile_it)
$(call obj,$(filter ui/% get/% serve/% tests/%,$(all_src))): config.mk

# Linked by the programs and the tests: every function of src/ outside src/run and src/convert/*.c.
engine := $O/libengine.a
$(engine): $(call obj,$(lib_src) $(convert_lib_src))
	$(call say,AR,$@)
	@rm -f $@
	$Q$(AR) qc $@ $^ && $(RANLIB) $@

# Linked by other programs: one object whose only global symbols are the functions of the two public headers.
public_headers := include/qsf.h include/qsf_engine.h include/qsf_settings.h
$O/public.txt: $(addprefix $S/,$(public_headers))
	@mkdir -p $(@D)
	$Qsed -n 's/.*\(qsf_[a-z0-9_]*\)(.*/\1/p' $^ | sort -u >$@

# Apple's linker makes names local itself, from a list in which they begin with _.
ifeq ($(PLATFORM),macos)
link_public = sed 's/^/_/' $O/public.txt >$O/public.list && \
    $(CC) -nostdlib -r -Wl,-exported_symbols_list,$O/public.list -o $@ $(filter %.o,$^)
else
link_public = $(CC) -nostdlib -r -o $@ $(filter %.o,$^) && $(OBJCOPY) --keep-global-symbols=$O/public.txt $@
endif
$O/libqsf.o: $(call obj,$(lib_src)) $O/public.txt
	$Q$(link_public)
libqsf.a: $O/libqsf.o
	$(call say,AR,$@)
	@rm -f $@
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

qsf-get: $(call obj,$(get_src)) $(engine)
	$(call say,LINK,$@)
	$Q$(link_get) -o $@ $^ $(GET_LIBS) $(LIB_LIBS)

qsf-serve: $(call obj,$(serve_src)) $(engine)
	$(call say,LINK,$@)
	$Q$(link_serve) -o $@ $^ $(SERVE_LIBS) $(LIB_LIBS)

# The kernel checks link only the kernels, which must not need anything else.
$(or $(checkkern),checkkern): $(call obj,$(checkkern_src)) $(call obj,$(kernel_src))
	$(call say,LINK,$@)
	$Q$(link) -o $@ $^ -lm

# Parts of the chat that need nothing else of it.
fuzz_ui := $(call obj,$(call find,ui/code/*.c ui/md/*.c) ui/buf.c ui/canvas.c ui/theme.c ui/wrap.c)
$(fuzz_bin): $O/%: $O/%.o $(call obj,$(harness_src)) $(fuzz_ui) $(call obj,$(serve_parts)) $(engine)
	$(call say,LINK,$(@F))
	$Q$(link) -fsanitize=fuzzer -o $@ $^ $(CMOCKA_LIBS) $(UI_LIBS) $(LIB_LIBS)

# Each of them keeps its time if a new run of configure has the same results.
config.mk config.flags config.h: config.stamp ; @:
config.stamp: $S/configure $S/VERSION
	@echo "configure or VERSION changed: configuring again"
	@eval '$S/configure $(subst ','\'',$(CONFIGURE_ARGS))' >/dev/null

-include $(patsubst %.o,%.d,$(call obj,$(all_src) $(static_src) $(fuzz_src)))

include $(addprefix $S/mk/,compdb.mk units.mk check.mk arm.mk wasm.mk bench.mk fuzz.mk dist.mk static.mk package.mk)

run: qsf-chat $(filter qsf-get,$(programs))
	@./qsf-chat $(MODEL)

clean:
	rm -rf $O san tsan fuzz arm arm-all wasm package static qsf-chat qsf-run qsf-convert qsf-get qsf-serve checkkern libqsf.a compile_commands.json qsf.c qsf.h

distclean: clean
	@chmod -R u+w distcheck 2>/dev/null || true
	rm -rf distcheck corpus config.mk config.flags config.h config.log config.stamp qsf.pc qsf-*.tar.gz
	@test '$S' = . || { for d in templates models; do test ! -L $$d || rm -f $$d; done; rm -f Makefile; }
