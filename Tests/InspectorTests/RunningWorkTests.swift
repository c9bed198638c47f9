import Foundation
import HTTPServer
import Inspector
import Lazaret
import Platform
import TestSupport
import Testing

@Suite("Work that goes on in the background")
struct RunningWorkTests {
  private func work() throws -> RunningWork { try Scene().inspector().work }

  private let store = StoreID("q-2026-11-21-10-11-12-00000000")

  @Test("a store has one job at a time, and cancelling ends it")
  func oneAtATime() throws {
    let work = try work()
    let job = try work.start(.salvage, "A salvage", store: store, target: .to("stores")) { observer in
      while !observer.isCancelled {
        observer.report("working", 0.5)
        Thread.sleep(forTimeInterval: 0.002)
      }
      throw Failure<LazaretStop>(.cancelled, detail: "it was cancelled")
    }
    #expect(throws: Refusal.self) {
      try work.start(.salvage, "Another", store: store, target: .to("stores")) { _ in JobOutcome("") }
    }
    #expect(work.job(for: store)?.id == job.id)
    _ = try work.cancel(job.id)
    work.stop()
    #expect(work.job(job.id)?.state == .cancelled)
    #expect(throws: Refusal.self) { try work.cancel(job.id) }
    #expect(throws: Refusal.self) { try work.cancel("job-99") }
  }

  @Test("a listener is told what runs, how far it is, and when it is done")
  func events() throws {
    let work = try work()
    let gate = DispatchSemaphore(value: 0)
    let job = try work.start(.backup, "A backup", store: nil, target: .to("stores")) { observer in
      gate.wait()
      Thread.sleep(forTimeInterval: 0.15)
      observer.report("packing", 0.25)
      return JobOutcome("Done.")
    }
    guard case .chunks(let chunks) = work.events().body else {
      Issue.record("no stream")
      return
    }
    gate.signal()
    var text = ""
    while !text.contains("event: done"), let chunk = try chunks.next() {
      text += String(decoding: chunk, as: UTF8.self)
    }
    chunks.cancel()
    #expect(text.contains("event: running\ndata: {\"jobs\":[\"\(job.id)\"],\"endings\":0}"))
    #expect(text.contains("\"phase\":\"packing\",\"fraction\":0.25"))
    #expect(text.contains("\"state\":\"done\""))
  }

  @Test("progress never goes back")
  func progress() throws {
    let work = try work()
    let (told, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let job = try work.start(.proof, "A proof", store: nil, target: .to("stores")) { observer in
      observer.report("one", 0.6)
      observer.report("two", 0.2)
      told.signal()
      gate.wait()
      return JobOutcome("Done.")
    }
    told.wait()
    #expect(work.job(job.id)?.fraction == 0.6)
    #expect(work.job(job.id)?.phase == "two")
    gate.signal()
    work.stop()
  }
}

/// What a job throws that was told to end.
private enum LazaretStop: String, FailureKind {
  case cancelled

  var usualOperation: String { "go on" }

  var usualHint: String { "Begin again." }
}
