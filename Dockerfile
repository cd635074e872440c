# The service as a container (docs/install.md). It contains no agents: build your own image on top of it.

FROM docker.io/library/rust:1.95-slim-trixie AS build
WORKDIR /source
COPY . .
# The build needs only Rust and the C compiler of this image.
RUN cargo build --release --locked --bin algonius

FROM docker.io/library/debian:trixie-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --home-dir /var/lib/algonius-home --create-home algonius \
    && install -d -m 700 -o algonius -g algonius /var/lib/algonius /run/algonius
COPY --from=build /source/target/release/algonius /usr/local/bin/algonius
COPY config/supervisor.toml /etc/algonius/supervisor.toml
ENV XDG_STATE_HOME=/var/lib XDG_RUNTIME_DIR=/run
# By its number, so that a runtime can verify that it is not root.
USER 10001:10001
WORKDIR /var/lib/algonius-home
# History, keys and token.
VOLUME /var/lib/algonius
EXPOSE 8080
# Sends a request like a caller, with the service's own token.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["algonius", "status"]
ENTRYPOINT ["algonius"]
# Listens on all addresses of the container: publish the port on loopback, or put TLS in front.
CMD ["serve", "--config", "/etc/algonius/supervisor.toml", "--listen", "0.0.0.0:8080"]
