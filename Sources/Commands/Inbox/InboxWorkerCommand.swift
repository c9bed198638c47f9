import ArgumentParser
import Foundation
import Inbox
import Platform
import SystemPackage

/// `lazaret inbox-worker`: runs one inbox job in a process that isolates itself; only for `serve --inbox`.
struct InboxWorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inbox-worker", abstract: "Does one job of an inbox.", shouldDisplay: false)

  @Argument(help: "The file with the order.")
  var order: PathArgument

  @Flag(help: "Do nothing but try what a worker cannot do; the order is a folder.")
  var isTrial = false

  /// Applies a worker's isolation, tries to escape and reports the outcome.
  private func tryIsolation() throws {
    let folder = order.path
    let isolation = WorkIsolation.apply(readable: [], writable: [])
    let trial: JSON.Object = [
      "reached": isolation.reached.map(\.rawValue).sorted(), "missing": isolation.missing.map(\.rawValue),
      "done": WorkIsolation.trials(outside: folder),
    ]
    try Terminal.standardOutput.write(json: trial, .line)
  }

  func run() throws {
    try report(json: true) {
      if isTrial { return try tryIsolation() }
      let fileSystem = FileSystem()
      let bytes = try fileSystem.contents(of: order.path, limit: 1 << 20)
      let order = try JSONDecoder().decode(WorkOrder.self, from: Data(bytes))
      try order.resources.apply()
      guard let writable = order.writable, let temporary = order.temporary else { throw ExitStatus.failed }
      for folder in writable + [temporary] { try fileSystem.makeDirectory(folder) }
      unsafe setenv("TMPDIR", temporary.string, 1)
      // Before any other thread starts.
      let isolation = WorkIsolation.apply(readable: order.readable, writable: writable)
      Self.endWithItsMaster()
      var result = BundleWork(order).run()
      result.isolation = isolation
      guard let path = order.result.path else { throw ExitStatus.failed }
      let text = try JSON.bytes(of: result, .line, to: "write the result", at: path)
      try fileSystem.writeAtomically(text, to: path, replacing: true, permissions: .ownerReadWrite)
    }
  }

  /// Exits when the parent, which holds this process's input open, ends.
  private static func endWithItsMaster() {
    WorkThread.start(named: "lazaret.master") {
      while true {
        do {
          guard let bytes = try FileHandle.standardInput.read(upToCount: 4096), !bytes.isEmpty else { _exit(1) }
        } catch {
          // Interrupted by a signal.
          Thread.sleep(forTimeInterval: 0.05)
        }
      }
    }
  }
}
