# The service as a container (docs/install.md). Agents are not in it: build your own image upon it.

FROM docker.io/library/rust:1.95-slim-trixie AS build
WORKDIR /source
COPY . .
# Nothing but Rust and the C compiler of this image is needed.
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
# By its number, so that who runs it can see that it is not root.
USER 10001:10001
WORKDIR /var/lib/algonius-home
# The history, the keys and the token.
VOLUME /var/lib/algonius
EXPOSE 8080
# Asks as a caller does, with the service's own token.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["algonius", "status"]
ENTRYPOINT ["algonius"]
# All addresses of the container: publish the port on loopback, or put TLS in front.
CMD ["serve", "--config", "/etc/algonius/supervisor.toml", "--listen", "0.0.0.0:8080"]
