//! Tests of the limits that the clients of a provider share.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio::time::{Instant, timeout};

use super::provider::{STEP_TIMEOUT, read_request};
use super::*;

fn provider_with_limits(base_url: &str, concurrent: u32, per_minute: u32) -> Arc<ModelProvider> {
    Arc::new(ModelProvider {
        max_concurrent: NonZeroU32::new(concurrent).unwrap(),
        requests_per_minute: NonZeroU32::new(per_minute).unwrap(),
        ..model_provider(base_url)
    })
}

/// Serves connections at the same time; each is answered once `barrier_size` of them have their requests. Returns the
/// base address, and the greatest number of requests that were open at the same time.
async fn start_concurrent_provider(barrier_size: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (open_requests, max_open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (barrier, max_open_requests) =
        (Arc::new(Barrier::new(barrier_size)), Arc::clone(&max_open));
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (open_requests, max_open) = (Arc::clone(&open_requests), Arc::clone(&max_open));
            let barrier = Arc::clone(&barrier);
            tokio::spawn(async move {
                read_request(&mut stream).await.unwrap();
                max_open
                    .fetch_max(open_requests.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                barrier.wait().await;
                // Time in which a further request could arrive.
                tokio::time::sleep(Duration::from_millis(20)).await;
                open_requests.fetch_sub(1, Ordering::SeqCst);
                let ScriptedResponse::RawResponse(response) = ScriptedResponse::text("ok") else {
                    return;
                };
                stream.write_all(response.as_bytes()).await.unwrap();
            });
        }
    });
    (base_url, max_open_requests)
}

/// Sends four calls by different clients of one provider, each created from its own copy of the settings.
async fn send_four_calls(base_url: &str, concurrent: u32) {
    let connections = connections();
    let calls = (0..4).map(|_| {
        let client = connections.client(provider_with_limits(base_url, concurrent, 1000));
        tokio::spawn(async move { client.complete(greeting()).await })
    });
    for call in calls.collect::<Vec<_>>() {
        let reply = timeout(STEP_TIMEOUT, call).await.unwrap().unwrap();
        assert_eq!(reply.unwrap().text, "ok");
    }
}

#[tokio::test]
async fn clients_of_a_provider_share_its_open_calls() {
    let (base_url, max_open_requests) = start_concurrent_provider(1).await;
    send_four_calls(&base_url, 1).await;
    assert_eq!(max_open_requests.load(Ordering::SeqCst), 1);
    // This provider answers only if two calls are open at the same time.
    let (base_url, max_open_requests) = start_concurrent_provider(2).await;
    send_four_calls(&base_url, 2).await;
    assert_eq!(max_open_requests.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_rate_wait_for_the_end_of_the_minute() {
    let registry = LimitRegistry::default();
    let provider = provider_with_limits("http://127.0.0.1:1/v1", 8, 2);
    let (start, mut acquired_at_seconds) = (Instant::now(), Vec::new());
    for _ in 0..5 {
        // Each call reads the limits again, as after a reload.
        let limits = registry.find_or_create(&provider).await;
        assert!(limits.acquire().await.is_some());
        acquired_at_seconds.push(start.elapsed().as_secs());
    }
    assert_eq!(acquired_at_seconds, [0, 0, 60, 60, 120]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_takes_no_call_from_the_others() {
    let registry = LimitRegistry::default();
    let limits =
        registry.find_or_create(&provider_with_limits("http://127.0.0.1:1/v1", 1, 1)).await;
    let start = Instant::now();
    drop(limits.acquire().await);
    let cancelled = timeout(Duration::from_secs(10), limits.acquire()).await;
    assert!(cancelled.is_err(), "the rate allows one call within a minute");
    drop(cancelled);
    assert!(limits.acquire().await.is_some());
    assert_eq!(start.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn other_limits_of_a_provider_are_counted_apart() {
    let registry = LimitRegistry::default();
    let provider_with_concurrency =
        |concurrent| provider_with_limits("http://127.0.0.1:1/v1", concurrent, 60);
    let first = registry.find_or_create(&provider_with_concurrency(1)).await;
    assert!(Arc::ptr_eq(&first, &registry.find_or_create(&provider_with_concurrency(1)).await));
    assert!(!Arc::ptr_eq(&first, &registry.find_or_create(&provider_with_concurrency(2)).await));
}
