import Dispatch
import Inspector
import PersistentStore
import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Looks at stores that no page waits for")
struct ExaminationQueueTests {
  private struct Trouble: Error {}

  @Test("A page does not wait for a look that takes long, which is begun once, and what it found is shown afterwards")
  func moment() throws {
    let scene = try Scene()
    let store = try scene.make("App.sqlite", bundle: try Scene.bundle())
    let queue = ExaminationQueue()
    let gate = DispatchSemaphore(value: 0)
    let begun = Mutex(0)
    func part(by end: ContinuousClock.Instant) -> PagePart<Examination>? {
      queue.part(of: store, by: end) {
        begun.withLock { $0 += 1 }
        gate.wait()
        return try Examiner().examine(store)
      }
    }
    let start = ContinuousClock.now
    #expect(part(by: .now) == nil && part(by: .now + .milliseconds(50)) == nil)
    #expect(ContinuousClock.now - start < .seconds(20))
    gate.signal()
    let found = try #require(part(by: .now + .seconds(60)))
    #expect(found.value?.verdict == .compatible && begun.withLock { $0 } == 1)
    // It was shown; the next page has another look.
    gate.signal()
    #expect(part(by: .now + .seconds(60))?.value?.verdict == .compatible)
    #expect(begun.withLock { $0 } == 2)
  }

  @Test("Looks follow each other, and one that fails says so and holds up none of the others")
  func several() throws {
    let queue = ExaminationQueue()
    let (running, most) = (Mutex(0), Mutex(0))
    let names: [FilePath] = ["/a", "/b", "/c"]
    func look(_ name: FilePath, by end: ContinuousClock.Instant) -> PagePart<Examination>? {
      queue.part(of: name, by: end) {
        let count = running.withLock { count in
          count += 1
          return count
        }
        most.withLock { $0 = max($0, count) }
        defer { running.withLock { $0 -= 1 } }
        throw Trouble()
      }
    }
    for name in names { _ = look(name, by: .now) }
    for name in names {
      let part = try #require(look(name, by: .now + .seconds(60)))
      #expect(part.value == nil && part.problem != nil)
    }
    #expect(most.withLock { $0 } == 1)
  }

  @Test("The list of stores and its twin say the same of what was looked at")
  func list() throws {
    let scene = try Scene()
    let bundle = try Scene.bundle()
    try scene.make("App.sqlite", bundle: bundle)
    let browser = try Browser(try scene.inspector([bundle]))
    let live = try #require(try browser.json("/stores.json")["live"] as? [[String: Any]])
    #expect(live.map { $0["state"] as? String } == ["sound"] && live.map { $0["verdict"] as? String } == ["compatible"])
    let page = try browser.get("/stores").text
    #expect(page.contains(">sound<") && !page.contains("being checked") && !page.contains("data-reload"))
  }
}
