# SPDX-License-Identifier: GPL-3.0-or-later
# The programs of the unit tests and the tools of test scripts; part of the Makefile. Linking one of them costs
# more than compiling it, because all contain the engine. So the tests are one program, obj/tests/unit/units,
# those of the interface another, and the tools a third, with a symbolic link for each.

# Tests with programs of their own: those that replace functions of libc, and those that TESTS picks, because
# then the others need not be compiled.
units_apart := base/t_savefile engine/t_oom%
unit_single := $(if $(TESTS),$(unit_bin),$(filter $(units_apart:%=$O/tests/unit/%),$(unit_bin)))
unit_linked := $(filter-out $(unit_single),$(unit_bin))
# The interface needs its objects and libraries.
ui_units := $O/tests/unit/ui/%
units := $O/tests/unit/units
units_ui := $O/tests/unit/ui/units
tools := $O/tests/tools/tools

# In case an object was compiled before the compiler included this.
$(unit_bin:%=%.o) $(tool_bin:%=%.o): $S/tests/unit/units.h

unit_inputs := $(call obj,$(unit_main) $(harness_src)) $(engine)
ui_inputs := $(call obj,$(filter-out ui/main.c,$(ui_src)))
define link_units
$(call say,LINK,$(@:$O/tests/%=%))
@rm -f $@
$Q$(link_dynamic) -o $@ $(filter %.o,$^) $(engine) $(CMOCKA_LIBS) $(if $(filter $(ui_units),$@),$(UI_LIBS)) $(LIB_LIBS)
endef

$(filter $(ui_units),$(unit_single)) $(units_ui): $(ui_inputs)
$(filter $O/tests/unit/serve/%,$(unit_single)) $(units): $(call obj,$(serve_parts))
$(unit_single): $O/%: $O/%.o $(unit_inputs)
	$(link_units)
$(units) $(units_ui) $(tools): $(unit_inputs)
	$(link_units)
$(units): $(addsuffix .o,$(filter-out $(ui_units),$(unit_linked)))
$(units_ui): $(addsuffix .o,$(filter $(ui_units),$(unit_linked)))
$(tools): $(addsuffix .o,$(tool_bin))

# A link is as new as the program.
$(filter-out $(ui_units),$(unit_linked)): $(units)
	@ln -sf ../units $@
$(filter $(ui_units),$(unit_linked)): $(units_ui)
	@ln -sf units $@
$(tool_bin): $(tools)
	@ln -sf tools $@
