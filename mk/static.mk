# SPDX-License-Identifier: GPL-3.0-or-later
# Static programs in static/, of the objects of this build; part of the Makefile. They are one file with several
# names (packaging/static/one.c), because most of it is kernels.

.PHONY: static

# Only where configure found what they are made of.
static_programs := $(addprefix static/,$(programs))
# The objects of this build are position-independent unless it is static itself.
static_flags := $(filter-out -static -pie,$(LDFLAGS) $(EXTRA_LDFLAGS)) $(if $(filter -pie,$(EXTRA_LDFLAGS)),-static-pie,-static)
link_alone = $(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(static_flags) -Lstatic/libs/lib
# Libraries of which the system has no static form, or one that needs too many others.
static_libs := static/libs/.built
# What libcurl.a of static/libs needs.
static_get_libs ?= -lcurl -lcares -lmbedtls -lmbedx509 -lmbedcrypto -lnettle

static: $(static_programs)

$(static_libs): $S/packaging/static-libs
	$(call say,LIBS,$(@D))
	@rm -rf $(@D) && mkdir -p $(@D)
	$QCC='$(CC)' AR='$(AR)' $S/packaging/static-libs $(@D) md4c $(if $(get_src),curl) $(if $(serve_src),libmicrohttpd)
	@touch $@

# $(call one_main,NAME,OBJECTS): one object whose only global symbol is qsf_NAME_main.
define one_main
$(call say,LD,$@)
@mkdir -p $(@D)
$Q$(CC) -nostdlib -r -o $@ $(filter %.o,$^)
$Q$(OBJCOPY) --redefine-sym main=$1 --keep-global-symbol=$1 $@
endef
$O/static/chat.o: $(call obj,$(ui_src)) ; $(call one_main,qsf_chat_main)
$O/static/run.o: $(call obj,$(run_src)) ; $(call one_main,qsf_run_main)
$O/static/convert.o: $(call obj,$(convert_src)) ; $(call one_main,qsf_convert_main)
$O/static/serve.o: $(call obj,$(serve_src)) ; $(call one_main,qsf_serve_main)
$O/static/get.o: $(call obj,$(get_src)) ; $(call one_main,qsf_get_main)

static_objects := packaging/static/one.o packaging/static/users.o static/chat.o static/run.o static/convert.o \
    $(if $(serve_src),static/serve.o) $(if $(get_src),packaging/static/names.o static/get.o)
static/qsf-chat: $(addprefix $O/,$(static_objects)) $(engine) $(static_libs)
	$(call say,LINK,$@)
	$Q$(link_alone) -o $@ $(filter %.o,$^) $(engine) $(UI_LIBS) $(if $(get_src),$(static_get_libs)) $(if $(serve_src),-lmicrohttpd) $(LIB_LIBS)

$(filter-out static/qsf-chat,$(static_programs)): static/qsf-chat
	$(call say,LN,$@)
	$Qln -f $< $@
