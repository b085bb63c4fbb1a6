# SPDX-License-Identifier: GPL-3.0-or-later
# `nix run .` opens the chat, `nix build .` builds and tests, `nix develop` has all that is needed for both.
{
  description = "Chat with a language model larger than its RAM budget";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      lib = nixpkgs.lib;
      forAllSystems = make:
        lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = forAllSystems (pkgs: rec {
        qsf = pkgs.stdenv.mkDerivation {
          pname = "qsf";
          version = lib.fileContents ./VERSION;
          src = self;

          nativeBuildInputs = [ pkgs.pkg-config ];
          buildInputs = with pkgs; [
            curl
            inih
            jansson
            libdeflate
            libmicrohttpd
            liburing
            lz4
            md4c
            ncurses
            nettle
            pcre2
            readline
            utf8proc
            zstd
          ];
          checkInputs = [ pkgs.cmocka ];
          nativeCheckInputs = with pkgs; [ openssl procps python3 tmux ];

          # configure knows no options but its own.
          dontDisableStatic = true;
          dontAddDisableDepTrack = true;
          enableParallelBuilding = true;
          doCheck = true;
          checkTarget = "check";

          meta = {
            description = "Chat with a language model larger than its RAM budget";
            license = lib.licenses.gpl3Plus;
            platforms = [ "x86_64-linux" "aarch64-linux" ];
            mainProgram = "qsf-chat";
          };
        };
        default = qsf;
      });

      # The installed programs: the guide answers from where it was installed.
      checks = forAllSystems (pkgs: {
        guide = pkgs.runCommand "qsf-guide" { nativeBuildInputs = [ self.packages.${pkgs.system}.qsf ]; } ''
          export HOME=$TMPDIR
          echo 'How do I quit?' | qsf-chat --no-config guide | tee $out | grep /quit
        '';
      });

      devShells = forAllSystems (pkgs: {
        default = pkgs.mkShell {
          inputsFrom = [ self.packages.${pkgs.system}.qsf ];
          packages = with pkgs; [ clang-tools shellcheck ];
        };
      });
    };
}
