/// Does work of another module, and throws its errors wrapped in the caller's own.
///
/// - Parameter wrap: usually an initialiser: `try wrapping(KitError.init) { () throws(FileError) in try file.close() }`.
@inlinable
package func wrapping<Value: ~Copyable, Inner: Error, Outer: Error>(
  _ wrap: (Inner) -> Outer, _ body: () throws(Inner) -> Value
) throws(Outer) -> Value {
  do throws(Inner) { return try body() } catch { throw wrap(error) }
}
