# berthd and berth on a small Debian.   docker build -t berth .
#   docker run --rm -v /run/berth:/run/berth berth        (the folder must be writable for user 65532)

# The workspace's rust-version (Cargo.toml) is the least that works here.
ARG RUST=docker.io/library/rust:1.90-slim-bookworm
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${RUST} AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev pkg-config libhwloc-dev libudev-dev \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
WORKDIR /src
COPY . .
# The caches are no part of the image, so the programs are copied out of the target folder in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked -p berthd -p berth \
 && install -D -t /out target/release/berthd target/release/berth

FROM ${BASE}
# libhwloc15: the library that berthd reads the topology with. berth itself needs only libc.
RUN apt-get update \
 && apt-get install -y --no-install-recommends libhwloc15 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && install --directory --owner=65532 --group=65532 /run/berth
COPY --from=build /out/ /usr/local/bin/
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/berth/
# A number and not a name: Kubernetes can tell from it that this is not root.
USER 65532:65532
# Answered from the first snapshot on. The chart has probes of its own and does not use this one.
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s --retries=3 \
    CMD ["berth", "--server", "unix:/run/berth/berthd.sock", "info"]
ENTRYPOINT ["berthd"]
CMD ["--uds=/run/berth/berthd.sock"]
