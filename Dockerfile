# One build for all services, and a small image for each: `docker build --target payments .`
#
# The cache mounts keep crates and compiled code between builds on the same machine, so that a change compiles what it
# touches. They are no part of any image.

FROM rust:1.95-slim-trixie AS build
WORKDIR /src
COPY . .
# Cargo tells by a file's time whether it has changed, and a checkout gives every file a new one, or an older one than the
# cache has. So the cache keeps the checksums of what it was built from: what is not as it was then is new, all else is old.
# A build that fails leaves none, and the next one compiles everything of ours.
RUN --mount=type=cache,id=watertight-crates,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,id=watertight-target,target=/target,sharing=locked \
    set -eu; \
    find . -type f -exec sha256sum {} + | sort > /sources; \
    find . -exec touch -d 2000-01-01 {} +; \
    touch /target/sources; \
    comm -3 /target/sources /sources | tr -d '\t' | cut -c 67- | \
        while read -r file; do touch -c "$file" "$(dirname "$file")"; done; \
    rm /target/sources; \
    export CARGO_TARGET_DIR=/target; \
    cargo build --locked --release -p storefront -p catalog -p orders -p payments; \
    cp /sources /target/sources; \
    mkdir /programs; \
    for service in storefront catalog orders payments; do cp "/target/release/$service" /programs/; done

# No shell and no package manager, and not root. The C library is the one of the image that built the programs.
FROM gcr.io/distroless/cc-debian13:nonroot AS runtime
# In a container, loopback is nobody. Only the first port is meant for others.
ENV LISTEN=0.0.0.0:8080 ADMIN_LISTEN=0.0.0.0:9090

FROM runtime AS storefront
COPY --from=build /programs/storefront /usr/local/bin/storefront
ENTRYPOINT ["storefront"]

FROM runtime AS catalog
COPY --from=build /programs/catalog /usr/local/bin/catalog
ENTRYPOINT ["catalog"]

FROM runtime AS orders
COPY --from=build /programs/orders /usr/local/bin/orders
ENTRYPOINT ["orders"]

FROM runtime AS payments
COPY --from=build /programs/payments /usr/local/bin/payments
ENTRYPOINT ["payments"]
