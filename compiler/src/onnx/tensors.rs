//! Tensors stored in the model: their numbers must be there, all of them.

use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::{GraphProto, TensorProto};

use super::interface::data_type_name;
use super::reason::Reason;

/// Finds what is wrong with a graph's initialisers.
///
/// `is_used` says which of them matter: exporters leave others behind.
pub(super) fn check<'a>(
    graph: &'a GraphProto,
    is_used: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = Reason> + 'a {
    let sparse = graph
        .sparse_initializer
        .iter()
        .filter_map(|tensor| tensor.values.as_ref())
        .map(|values| Reason::SparseTensor { tensor: values.name.clone() });
    let dense = graph.initializer.iter().filter(move |tensor| is_used(&tensor.name));
    sparse.chain(dense.filter_map(|tensor| check_tensor(&tensor.name, tensor)))
}

/// Finds what is wrong with one tensor: numbers elsewhere, or not as many as its shape says.
pub(super) fn check_tensor(name: &str, tensor: &TensorProto) -> Option<Reason> {
    if tensor.data_location == Some(DataLocation::External as i32) || !tensor.external_data.is_empty() {
        return Some(Reason::ExternalData { tensor: name.into() });
    }
    let found = numbers_present(tensor)?;
    (elements(&tensor.dims) != Some(found as u64)).then(|| Reason::TensorLength {
        tensor: name.into(),
        dims: tensor.dims.clone(),
        data_type: data_type_name(tensor.data_type),
        found,
    })
}

/// Multiplies dimensions; none if one is negative or the product too large.
pub(super) fn elements(dims: &[i64]) -> Option<u64> {
    dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(u64::try_from(dim).ok()?))
}

/// Counts the numbers that a tensor holds; none for types that no operator here reads.
fn numbers_present(tensor: &TensorProto) -> Option<usize> {
    let (bytes, unpacked) = match DataType::try_from(tensor.data_type).ok()? {
        DataType::Float => (4, tensor.float_data.len()),
        DataType::Double => (8, tensor.double_data.len()),
        DataType::Int64 => (8, tensor.int64_data.len()),
        DataType::Int32 => (4, tensor.int32_data.len()),
        DataType::Int16 | DataType::Uint16 | DataType::Float16 => (2, tensor.int32_data.len()),
        DataType::Int8 | DataType::Uint8 | DataType::Bool => (1, tensor.int32_data.len()),
        _ => return None,
    };
    Some(if tensor.raw_data.is_empty() { unpacked } else { tensor.raw_data.len() / bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dims: Vec<i64>, numbers: usize) -> TensorProto {
        TensorProto {
            dims,
            data_type: DataType::Float as i32,
            raw_data: vec![0; 4 * numbers],
            ..TensorProto::default()
        }
    }

    #[test]
    fn numbers_must_fill_the_shape() {
        assert_eq!(check_tensor("w", &tensor(vec![2, 3], 6)), None);
        assert!(check_tensor("w", &tensor(vec![2, 3], 5)).is_some());
        assert!(check_tensor("w", &tensor(vec![i64::MAX, 4], 6)).is_some());
        assert!(check_tensor("w", &tensor(vec![-2, -3], 6)).is_some());
        assert_eq!(check_tensor("w", &tensor(vec![0], 0)), None);
    }
}
