//! How much the ledger holds, as `/status` tells it: counted anew while that is cheap, and for as long as a
//! count of many is good.

use std::time::Duration;

use algonius_actors::door::Gateway;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::stock::Stock;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// So many executions are counted each time.
const FEW: u64 = 10_000;

/// The last count, and when it was made. One is made at a time.
#[derive(Default)]
pub struct Stocktaking(Mutex<Option<(Instant, Stock)>>);

impl Stocktaking {
    /// What the ledger holds, or held a moment ago.
    ///
    /// # Errors
    /// When the ledger could not be read.
    pub async fn stock(&self, gateway: &Gateway) -> Result<Stock, Failure> {
        let mut last = self.0.lock().await;
        if let Some((at, stock)) = *last
            && at.elapsed() < good_for(stock.executions)
        {
            return Ok(stock);
        }
        let stock = gateway.stock().await?;
        *last = Some((Instant::now(), stock));
        Ok(stock)
    }
}

/// For how long a count of so many is good: a microsecond for each, which is many times what it took.
fn good_for(executions: u64) -> Duration {
    if executions <= FEW { Duration::ZERO } else { Duration::from_micros(executions) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_counted_each_time_and_a_million_once_a_second() {
        let good = [0, FEW, FEW + 1, 1_000_000].map(|count| good_for(count).as_millis());
        assert_eq!(good, [0, 0, 10, 1_000]);
    }
}
