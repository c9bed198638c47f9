package import GRDB

/// The SQL functions that triggers of Core Data stores call.
package enum CoreDataFunctions {
  /// Functions that tell Core Data's contexts about changes made by triggers; here they do nothing.
  ///
  /// The first two are those of derived attributes, the third that of older `ZT_…` triggers (format section 3.9).
  package static let notifications = [
    "NSCoreDataDATriggerUpdatedAffectedObjectValue",
    "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue",
    "NSCoreDataTriggerUpdateAffectedObjectValue",
  ]

  /// All functions, with the clock that `NSCoreDataNow` tells.
  package static func all(now: @escaping @Sendable () -> Double) -> [DatabaseFunction] {
    notifications.map { name in DatabaseFunction(name) { _ in nil } }
      + [DatabaseFunction("NSCoreDataNow", argumentCount: 0) { _ in now() }]
  }
}
