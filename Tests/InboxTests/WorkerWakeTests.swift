import Dispatch
import Inbox
import Testing

/// What wakes threads that wait for jobs.
@Suite("The waking of workers")
struct WorkerWakeTests {
  @Test func changesThatCameWhileAllWorkedWakeEachThreadOnce() {
    let wake = WorkerWake(count: 3)
    for _ in 0..<1000 { wake.signal() }
    for _ in 0..<3 { #expect(wake.wait(atMost: .seconds(10))) }
    #expect(!wake.wait(atMost: .milliseconds(1)))
    // What comes then wakes again.
    wake.signal()
    #expect(wake.wait(atMost: .seconds(10)))
    #expect(!wake.wait(atMost: .milliseconds(1)))
  }

  @Test func aThreadThatWaitsIsWokenAtOnce() {
    let wake = WorkerWake(count: 1)
    let woken = DispatchSemaphore(value: 0)
    DispatchQueue.global().async {
      if wake.wait(atMost: .seconds(60)) { woken.signal() }
    }
    wake.signal()
    #expect(woken.wait(timeout: .now() + .seconds(30)) == .success)
  }
}
