import StoreCoordination

/// An error in what was typed on the command line itself, which no store and no machine has a part in.
struct CommandLineSlip: Error {
  /// What is told of it.
  let error: any ReportableError

  /// Reads what was typed; an error of that is a slip.
  static func telling<Value>(_ read: () throws -> Value) throws -> Value {
    do {
      return try read()
    } catch let error as any ReportableError {
      throw CommandLineSlip(error: error)
    }
  }
}
